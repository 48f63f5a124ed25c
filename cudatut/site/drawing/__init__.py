"""What figures are drawn with, in one import: shapes, cells, lanes, marks, axes and rooflines.

    from cudatut.site.drawing import Grid, Svg, figure, tr

    def threads(n=8, block=4):
        s = Svg(640, 100)
        cells = Grid(s, 20, 40, 75, 44)
        cells.row(0, [(f"c{1 + i // block}", i) for i in range(n)])
        cells.heads(range(n))
        return figure(s, alt=tr("Eight threads in two blocks.", "两个线程块，共八个线程。"))

`cudatut.site.svg` has the shapes and the classes for colors; `cells` rows, grids and matrices of cells; `banks` the banks
of shared memory; `lanes` bars over time; `marks` legends and brackets; `axes` coordinates, linear and logarithmic;
`roofline` roofs over them; `markdown` tables. Nothing here knows a recording: figures get numbers from
`cudatut.site.references`.
"""

from cudatut.site.drawing.axes import Axes, decades, linear, log, powers_of_two
from cudatut.site.drawing.banks import BANKS, Banks
from cudatut.site.drawing.cells import Grid, Kind, hue
from cudatut.site.drawing.lanes import Lanes
from cudatut.site.drawing.markdown import table
from cudatut.site.drawing.marks import bracket, legend
from cudatut.site.drawing.roofline import Roofline
from cudatut.site.svg import Svg, figure, text_width, tr

__all__ = [
    "BANKS",
    "Axes",
    "Banks",
    "Grid",
    "Kind",
    "Lanes",
    "Roofline",
    "Svg",
    "bracket",
    "decades",
    "figure",
    "hue",
    "legend",
    "linear",
    "log",
    "powers_of_two",
    "table",
    "text_width",
    "tr",
]
