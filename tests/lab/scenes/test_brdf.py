"""Reflectances: reciprocity, energy, normalization, limits, and an independent vector form."""

import numpy as np
import pytest

from photostereo.core.errors import ParameterError
from photostereo_lab.scenes import BlinnPhong, Ggx, Lambertian, OrenNayar

ALL = [
    Lambertian(),
    BlinnPhong(),
    BlinnPhong(shininess=3.0, specular=1.0),
    BlinnPhong(shininess=300.0, specular=0.5),
    Ggx(),
    Ggx(roughness=0.08, reflectance=0.04),
    Ggx(roughness=0.5, reflectance=0.3),
    Ggx(roughness=1.0, reflectance=1.0),
    OrenNayar(),
    OrenNayar(sigma=1.2),
]


def hemisphere(count=400):
    """Directions (M, 3) and solid angles that integrate over the upper hemisphere (Gauss × trapezoid)."""
    # t² concentrates samples near the pole, where the lobes are.
    node, weight = np.polynomial.legendre.leggauss(count)
    t, dt = 0.5 * (node + 1.0), 0.5 * weight
    theta = 0.5 * np.pi * t**2
    jacobian = np.sin(theta) * np.pi * t * dt
    phi = 2.0 * np.pi * (np.arange(2 * count) + 0.5) / (2 * count)
    theta_grid, phi_grid = np.meshgrid(theta, phi, indexing="ij")
    s = np.sin(theta_grid)
    directions = np.stack([s * np.cos(phi_grid), s * np.sin(phi_grid), np.cos(theta_grid)], axis=-1)
    solid = np.broadcast_to((jacobian * (np.pi / count))[:, None], s.shape)
    return directions.reshape(-1, 3), solid.reshape(-1)


DIRECTIONS, SOLID = hemisphere()


def view_at(degrees):
    return np.array([np.sin(np.deg2rad(degrees)), 0.0, np.cos(np.deg2rad(degrees))])


def reflected(brdf, view, albedo=1.0):
    """The share of light from ``view`` that leaves again: ∫ f (n·l) dω, with n = z."""
    nl, nv = DIRECTIONS[:, 2], np.full(len(DIRECTIONS), view[2])
    diffuse, specular = brdf.terms(nl, nv, DIRECTIONS @ view)
    return float((((albedo * diffuse + specular) / np.pi) * nl * SOLID).sum())


def test_quadrature_itself():
    assert SOLID.sum() == pytest.approx(2 * np.pi, rel=1e-10)
    assert (SOLID * DIRECTIONS[:, 2]).sum() == pytest.approx(np.pi, rel=1e-10)


@pytest.mark.parametrize("brdf", ALL, ids=str)
def test_reciprocity_and_sign(brdf):
    rng = np.random.default_rng(2)
    pair = rng.normal(size=(2, 5000, 3))
    pair[..., 2] = np.abs(pair[..., 2]) + 1e-3
    light, view = pair / np.linalg.norm(pair, axis=-1, keepdims=True)
    lv = (light * view).sum(-1)
    forward = brdf.terms(light[:, 2], view[:, 2], lv)
    backward = brdf.terms(view[:, 2], light[:, 2], lv)
    for there, back in zip(forward, backward, strict=True):
        np.testing.assert_allclose(there, back, rtol=1e-12, atol=0)
        assert (there >= 0).all() and np.isfinite(there).all()


@pytest.mark.parametrize("brdf", ALL, ids=str)
def test_no_surface_reflects_more_than_it_receives(brdf):
    shares = [reflected(brdf, view_at(degrees)) for degrees in (0, 15, 30, 45, 60, 70, 80)]
    assert max(shares) <= 1.0 + 1e-4


def test_lambert_reflects_its_albedo():
    assert reflected(Lambertian(), view_at(35.0), albedo=0.4) == pytest.approx(0.4, rel=1e-10)


@pytest.mark.parametrize("shininess", [1.0, 10.0, 80.0, 500.0])
def test_blinn_phong_lobe_is_normalized_at_normal_incidence(shininess):
    brdf = BlinnPhong(shininess=shininess, specular=0.6)
    assert reflected(brdf, view_at(0.0), albedo=0.0) == pytest.approx(0.6, rel=1e-6)


def test_blinn_phong_without_gloss_is_lambert():
    nl, nv, lv = np.random.default_rng(0).uniform(0.1, 1.0, (3, 100))
    for got, wanted in zip(
        BlinnPhong(specular=0.0).terms(nl, nv, lv), Lambertian().terms(nl, nv, lv), strict=True
    ):
        np.testing.assert_allclose(got, wanted, atol=1e-15)


@pytest.mark.parametrize("roughness", [0.05, 0.2, 0.6, 1.0])
def test_ggx_facets_project_to_the_area_of_the_surface(roughness):
    facets = Ggx(roughness=roughness).distribution(DIRECTIONS[:, 2])
    assert (facets * DIRECTIONS[:, 2] * SOLID).sum() == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("roughness", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("degrees", [20.0, 55.0, 75.0])
def test_ggx_visible_facets_project_to_the_visible_area(roughness, degrees):
    """Smith's G₁ is the one masking with ∫ D(h) G₁(v) max(0, h·v) dω = n·v (Heitz 2014)."""
    brdf, view = Ggx(roughness=roughness), view_at(degrees)
    # Under a light at the zenith nothing is shadowed, so G is G₁ of the camera.
    masked = 4.0 * view[2] * brdf.masking(np.array(1.0), np.array(view[2]))
    facing = np.maximum(0.0, DIRECTIONS @ view)
    visible = (brdf.distribution(DIRECTIONS[:, 2]) * masked * facing * SOLID).sum()
    assert visible == pytest.approx(view[2], rel=2e-3)


def test_ggx_agrees_with_the_textbook_in_vectors():
    rng = np.random.default_rng(3)
    n, to_light, v = rng.normal(size=(3, 2000, 3))
    n, to_light, v = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (n, to_light, v))
    to_light *= np.sign((n * to_light).sum(1))[:, None]
    v *= np.sign((n * v).sum(1))[:, None]
    alpha, f0 = 0.35, 0.08
    h = (to_light + v) / np.linalg.norm(to_light + v, axis=1, keepdims=True)
    nl, nv, nh, lh = (n * to_light).sum(1), (n * v).sum(1), (n * h).sum(1), (to_light * h).sum(1)

    def tan2(c):
        return 1.0 / c**2 - 1.0

    def smith(c):
        return 0.5 * (np.sqrt(1.0 + alpha**2 * tan2(c)) - 1.0)

    D = 1.0 / (np.pi * alpha**2 * nh**4 * (1.0 + tan2(nh) / alpha**2) ** 2)
    G = 1.0 / (1.0 + smith(nl) + smith(nv))
    F = f0 + (1 - f0) * (1 - lh) ** 5
    _, specular = Ggx(roughness=alpha, reflectance=f0).terms(nl, nv, (to_light * v).sum(1))
    np.testing.assert_allclose(specular / np.pi, D * G * F / (4 * nl * nv), rtol=1e-8)


def test_ggx_coat_that_mirrors_everything_hides_the_base():
    diffuse, _ = Ggx(reflectance=1.0).terms(np.array([0.5]), np.array([0.7]), np.array([0.2]))
    assert diffuse[0] == 0.0


def test_oren_nayar_without_roughness_is_lambert():
    nl, nv, lv = np.random.default_rng(0).uniform(0.1, 1.0, (3, 100))
    for got, wanted in zip(
        OrenNayar(sigma=0.0).terms(nl, nv, lv), Lambertian().terms(nl, nv, lv), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_oren_nayar_agrees_with_its_angles():
    rng = np.random.default_rng(8)
    theta_l, theta_v = rng.uniform(0.0, 1.5, (2, 1000))
    phi, sigma = rng.uniform(-np.pi, np.pi, 1000), 0.7
    A, B = 1 - 0.5 * sigma**2 / (sigma**2 + 0.33), 0.45 * sigma**2 / (sigma**2 + 0.09)
    alpha, beta = np.maximum(theta_l, theta_v), np.minimum(theta_l, theta_v)
    expected = A + B * np.maximum(0.0, np.cos(phi)) * np.sin(alpha) * np.tan(beta)
    lv = np.cos(theta_l) * np.cos(theta_v) + np.sin(theta_l) * np.sin(theta_v) * np.cos(phi)
    factor, _ = OrenNayar(sigma=sigma).terms(np.cos(theta_l), np.cos(theta_v), lv)
    np.testing.assert_allclose(factor, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Ggx(roughness=0.0), "roughness"),
        (lambda: Ggx(reflectance=1.5), "reflectance"),
        (lambda: BlinnPhong(shininess=0.0), "shininess"),
        (lambda: BlinnPhong(specular=-0.1), "specular"),
        (lambda: OrenNayar(sigma=-1.0), "sigma"),
    ],
)
def test_wrong_parameters_are_named(make, word):
    with pytest.raises(ParameterError) as caught:
        make()
    assert (caught.value.code, caught.value.values["name"]) == ("bad-reflectance-parameter", word)
