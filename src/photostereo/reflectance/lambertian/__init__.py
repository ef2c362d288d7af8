"""Least squares on the Lambertian model."""

from photostereo.reflectance.entry import Look, ModelEntry

LS = ModelEntry(
    name="ls",
    title="Least squares",
    assumes="A matte object, clean photographs. The classic; instant.",
    model="photostereo.reflectance.lambertian.model:Lambertian",
    citation=(
        "R. J. Woodham, Photometric method for determining surface orientation from multiple "
        "images, Optical Engineering 19(1), 1980, doi:10.1117/12.7972479"
    ),
    look=Look("LS", "#555555", "x"),
    on_gpu=True,
)
