"""Compare two screenshots, independently of how a machine draws fonts."""

from __future__ import annotations

import base64

from playwright.sync_api import Browser

CELL = 20  # pixels; within one, the edges of letters do not count
LEVELS = 5  # of 255, by which a cell may be lighter or darker

# The mean brightness of each cell, and the size of the picture. The browser reads pictures: nothing else has to.
_CELLS = """async ([picture, cell]) => {
  const image = new Image();
  image.src = "data:image/jpeg;base64," + picture;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  const wide = Math.ceil(image.width / cell), high = Math.ceil(image.height / cell);
  const sums = new Array(wide * high).fill(0), counts = new Array(wide * high).fill(0);
  const data = pen.getImageData(0, 0, image.width, image.height).data;
  for (let at = 0; at < data.length; at += 4) {
    const x = (at / 4) % image.width, y = Math.floor(at / 4 / image.width);
    const place = Math.floor(y / cell) * wide + Math.floor(x / cell);
    sums[place] += (data[at] + data[at + 1] + data[at + 2]) / 3;
    counts[place] += 1;
  }
  return [wide, high, sums.map((sum, place) => sum / counts[place])];
}"""


def share_of_differing_cells(browser: Browser, first: bytes, second: bytes) -> float:
    """Return the share of grid cells that differ, including those that only one picture has."""
    context = browser.new_context()
    try:
        page = context.new_page()
        grids = [page.evaluate(_CELLS, [base64.b64encode(image).decode(), CELL]) for image in (first, second)]
    finally:
        context.close()
    levels_by_cell = [
        {(index % wide, index // wide): level for index, level in enumerate(levels)} for wide, _, levels in grids
    ]  # fmt: skip
    cells = levels_by_cell[0].keys() | levels_by_cell[1].keys()
    alike = [cell for cell in levels_by_cell[0].keys() & levels_by_cell[1].keys()
             if abs(levels_by_cell[0][cell] - levels_by_cell[1][cell]) <= LEVELS]  # fmt: skip
    return 1 - len(alike) / len(cells)
