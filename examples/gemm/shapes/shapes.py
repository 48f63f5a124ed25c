"""Forty shapes (m, n, k) for the scoreboard: drawn once, and kept as they came, so that no kernel could be tuned for them.

Each extent is log-uniform from 64 to 8192, rounded to a whole number and to nothing else. `drawn` says how.
"""

import numpy as np

SEED = 2026
LEAST, MOST = 64, 8192


# --8<-- [start:drawn]
def drawn() -> list[tuple[int, int, int]]:
    """The draw that gave SHAPES."""
    logs = np.random.default_rng(SEED).uniform(
        np.log(LEAST), np.log(MOST), (40, 3)
    )
    return [
        tuple(shape) for shape in np.rint(np.exp(logs)).astype(int).tolist()
    ]


# --8<-- [end:drawn]

# --8<-- [start:shapes]
# fmt: off
SHAPES = [
    (152, 1428, 618), (386, 358, 2965), (5170, 151, 1520), (272, 6979, 5553), (1400, 2468, 779),
    (3520, 564, 331), (246, 192, 821), (518, 1598, 68), (562, 376, 165), (1147, 529, 274),
    (177, 4459, 3066), (1215, 341, 6329), (985, 523, 5054), (301, 1874, 293), (228, 1919, 193),
    (700, 1068, 160), (2224, 916, 1306), (389, 492, 706), (626, 1698, 1053), (482, 65, 3016),
    (795, 312, 724), (101, 5159, 7794), (85, 364, 2211), (294, 1002, 483), (2739, 6697, 4767),
    (1302, 139, 6336), (72, 271, 251), (1667, 681, 100), (68, 1201, 695), (1184, 988, 4815),
    (5514, 160, 6186), (2925, 1421, 1571), (905, 5483, 198), (1172, 3326, 123), (1268, 452, 2633),
    (89, 1216, 4095), (1350, 304, 1542), (330, 1641, 119), (249, 75, 96), (944, 197, 783),
]
# fmt: on
# --8<-- [end:shapes]
