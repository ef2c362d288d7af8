"""The figures that the paper prints, for the columns beside ours.

A. J. Wagenmaker, B. E. Moore, R. R. Nadakuditi, Robust Photometric Stereo via Dictionary Learning, IEEE
Transactions on Computational Imaging 4(4), 2018, doi:10.1109/TCI.2018.2870334. Degrees, unless said; every
method's best of a grid per trial. The paper's SR is our ``sbl``.
"""

from __future__ import annotations

from collections.abc import Mapping

#: The ten objects of DiLiGenT, in the paper's order.
OBJECTS = ("ball", "cat", "pot1", "bear", "pot2", "buddha", "goblet", "reading", "cow", "harvest")

_TABLE_2_METHODS = ("pdlnv", "dlnv", "cbr", "sbl", "rpca", "ls")
_TABLE_2_MEAN = {
    "ball": (3.60, 3.82, 6.78, 2.08, 3.20, 4.10),
    "cat": (6.40, 8.10, 8.05, 6.73, 7.96, 8.41),
    "pot1": (6.99, 8.67, 8.57, 7.24, 8.81, 8.89),
    "bear": (8.51, 8.32, 9.77, 6.01, 7.89, 8.39),
    "pot2": (9.94, 13.88, 10.56, 11.98, 11.94, 14.65),
    "buddha": (13.56, 14.72, 14.90, 11.11, 13.88, 14.92),
    "goblet": (14.58, 17.69, 15.10, 15.53, 15.14, 18.50),
    "reading": (20.18, 19.58, 19.39, 12.56, 17.42, 19.80),
    "cow": (13.71, 17.58, 15.68, 22.42, 11.96, 25.60),
    "harvest": (20.54, 27.07, 26.93, 26.80, 25.50, 30.62),
}
_TABLE_2_MEDIAN = {
    "ball": (1.95, 1.85, 2.06, 2.02, 2.02, 2.41),
    "cat": (3.58, 6.15, 3.88, 5.75, 6.03, 6.52),
    "pot1": (3.70, 6.39, 4.15, 5.29, 6.61, 6.65),
    "bear": (6.34, 6.20, 7.07, 4.30, 6.01, 6.18),
    "pot2": (7.17, 12.79, 6.95, 8.32, 10.07, 11.60),
    "buddha": (7.84, 10.33, 8.85, 7.74, 9.25, 10.54),
    "goblet": (9.56, 16.04, 9.35, 12.23, 11.35, 15.70),
    "reading": (14.85, 12.51, 13.99, 7.18, 11.64, 12.50),
    "cow": (10.11, 12.30, 13.95, 21.32, 9.82, 26.32),
    "harvest": (15.28, 23.34, 22.21, 19.00, 20.32, 25.33),
}
_TABLE_1_PLS_MEAN = (3.63, 6.44, 7.02, 8.76, 9.95, 13.56, 14.58, 21.25, 16.62, 30.10)
_TABLE_1_PLS_MEDIAN = (2.14, 3.63, 3.76, 6.67, 7.17, 7.83, 9.53, 15.46, 13.69, 24.33)

_TABLE_3_METHODS = ("pdlnv", "dlnv", "cbr", "sbl", "rpca")
_TABLE_3_SECONDS = {
    "ball": (521.4, 156.5, 15.8, 872.2, 1076.3),
    "cat": (600.4, 146.7, 34.6, 2009.6, 2506.2),
    "pot1": (702.6, 149.9, 45.1, 2508.6, 1421.6),
    "bear": (640.3, 225.5, 37.1, 3335.0, 4249.1),
    "pot2": (624.4, 154.8, 31.1, 1639.8, 5328.6),
    "buddha": (654.0, 147.0, 34.9, 2007.1, 4878.1),
    "goblet": (602.2, 156.8, 34.3, 1283.4, 6524.6),
    "reading": (589.2, 149.7, 22.5, 1338.5, 2707.2),
    "cow": (609.8, 164.9, 27.7, 1310.5, 6179.8),
    "harvest": (609.9, 156.6, 100.9, 2473.0, 5449.9),
}


def _with_pls(table: Mapping[str, tuple[float, ...]], pls: tuple[float, ...]) -> dict[str, dict[str, float]]:
    return {
        name: {**dict(zip(_TABLE_2_METHODS, table[name], strict=True)), "pls": value}
        for name, value in zip(OBJECTS, pls, strict=True)
    }


#: Tables I and II: object → method → degrees, all 96 photographs.
MEAN_ERROR = _with_pls(_TABLE_2_MEAN, _TABLE_1_PLS_MEAN)
MEDIAN_ERROR = _with_pls(_TABLE_2_MEDIAN, _TABLE_1_PLS_MEDIAN)

#: Table III: object → method → seconds.
SECONDS = {
    name: dict(zip(_TABLE_3_METHODS, values, strict=True)) for name, values in _TABLE_3_SECONDS.items()
}

#: pot1, 10 photographs.
TEN_IMAGES = {"pdlnv": 7.96, "pls": 8.28}

#: pot2, 20 photographs, Poisson noise of 5 dB.
POT2_5DB = {"pdlnv": 15.72, "dlnv": 16.10, "cbr": 19.70, "sbl": 21.20, "rpca": 19.95, "ls": 21.20}

#: Harvard cat, 20 photographs, Poisson noise of 5 dB, against least squares on the clean photographs.
HARVARD_CAT_5DB = {"pdlnv": 7.65, "dlnv": 6.64, "sbl": 24.46, "rpca": 17.35, "cbr": 18.19, "ls": 17.87}
