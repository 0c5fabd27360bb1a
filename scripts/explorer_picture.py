"""Record the moving picture of the explorer for the front page.

    python scripts/explorer_picture.py --out docs/images/explorer.gif

Fits the loan table, opens the explorer in Chromium, and films a few questions. Needs the extras
`explore` and `dev`, and Chromium.
"""

from __future__ import annotations

import argparse
import io
import shutil
import threading
from pathlib import Path
from typing import Any

import vaca
from vaca.show.explore.server import serve
from vaca.show.explore.session import Session


def film(address: str) -> list[tuple[bytes, int]]:
    """Frames as PNG files, and how long each stands, in milliseconds."""
    from playwright.sync_api import sync_playwright

    frames: list[tuple[bytes, int]] = []
    with sync_playwright() as driver:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1000, "height": 900})

        def keep(milliseconds: int) -> None:
            view.wait_for_timeout(400)
            frames.append((view.screenshot(), milliseconds))

        def answered(column: str, value: str) -> None:
            cell = f"tr[data-column={column}] .would[data-value='{value}']"
            view.wait_for_selector(cell, timeout=300_000)

        view.goto(address)
        view.wait_for_selector("#rungs tr")
        view.select_option("#outcome", "income")
        view.fill("#row", "398")
        view.wait_for_timeout(3000)
        keep(1500)
        view.select_option("fieldset select[aria-label=education]", "3")
        answered("education", "3")
        keep(2000)
        slider = view.locator("input[type=range][aria-label=age]")
        for _ in range(6):
            for _ in range(4):
                slider.press("ArrowRight")
            answered("age", slider.input_value())
            keep(250)
        view.wait_for_selector("#charts figure", timeout=300_000)
        view.wait_for_selector("#effect[data-value]", timeout=300_000)
        keep(1500)
        for target, hold in (("#all", 2500), ("#arrows-head", 2000)):
            view.evaluate(f"document.querySelector('{target}').scrollIntoView()")
            keep(hold)
        view.select_option("#from", "approved")
        view.select_option("#to", "age")
        view.click("#add")
        keep(2500)
        browser.close()
    return frames


def write(frames: list[tuple[bytes, int]], path: Path) -> None:
    """Join the frames to a GIF of few colours."""
    from PIL import Image

    images = [Image.open(io.BytesIO(f)).convert("RGB").quantize(48) for f, _ in frames]
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=[hold for _, hold in frames],
        loop=0,
        optimize=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the explorer.")
    parser.add_argument("--out", type=Path, default=Path("docs/images/explorer.gif"))
    parser.add_argument("--model", type=Path, help="a model of the loan table; else it is fitted")
    arguments = parser.parse_args()
    loans = vaca.datasets.loan_applications()
    model = (
        vaca.load(arguments.model)
        if arguments.model
        else vaca.Composite(loans.graph, loans.schema).fit(loans.data, refits=8)
    )
    ready = threading.Event()
    told: list[Any] = []

    def started(address: str, server: Any) -> None:
        told.extend((address, server))
        ready.set()

    session = Session(model, loans.data, ("model", "loans.csv"))
    thread = threading.Thread(target=serve, args=(session,), kwargs={"started": started})
    thread.start()
    ready.wait()
    try:
        frames = film(told[0])
    finally:
        told[1].should_exit = True
        thread.join()
    write(frames, arguments.out)
    print(f"wrote {arguments.out}, {arguments.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
