"""Opens a page in a headless Chromium and runs steps in it: `python browser.py < JSON`, with a Python that has PySide6.

The input has `url`, `width`, `height`, `is_dark`, `steps`, `timeout_s` and `picture` (a file, or null). A step is an expression of
JavaScript that is evaluated every 50 ms until it is true. Prints JSON: `console`, the warnings and errors of the page, and `failed`, the
first step that did not become true in time, or null.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def main() -> None:
    """Run the steps of standard input."""
    given = json.load(sys.stdin)
    flags = ["--no-sandbox", "--disable-gpu"]  # as root in a container, without a screen
    if given["is_dark"]:
        flags.append("--blink-settings=preferredColorScheme=0")
    os.environ.update(
        QT_QPA_PLATFORM="offscreen", QT_QUICK_BACKEND="software", QTWEBENGINE_CHROMIUM_FLAGS=" ".join(flags)
    )
    from PySide6.QtCore import QTimer, QUrl
    from PySide6.QtWebEngineCore import QWebEnginePage
    from PySide6.QtWebEngineWidgets import QWebEngineView
    from PySide6.QtWidgets import QApplication

    app = QApplication(sys.argv[:1])
    console: list[str] = []

    class Page(QWebEnginePage):  # type: ignore[misc]
        def javaScriptConsoleMessage(self, level: Any, message: str, line: int, source: str) -> None:
            if "Info" not in str(level):
                console.append(f"{source}:{line}: {message}")

    view = QWebEngineView()
    page = Page(view)
    view.setPage(page)
    view.resize(given["width"], given["height"])
    steps, until = list(given["steps"]), time.monotonic() + given["timeout_s"]

    def finish() -> None:
        if given["picture"]:
            view.grab().save(given["picture"])
        print(json.dumps({"console": console, "failed": steps[0] if steps else None}))
        app.quit()

    def advance(is_true: Any) -> None:
        if is_true is True:
            steps.pop(0)
        if not steps or time.monotonic() > until:
            QTimer.singleShot(300, finish)  # lets transitions end
            return
        QTimer.singleShot(50, lambda: page.runJavaScript(f"Boolean({steps[0]})", advance))

    view.loadFinished.connect(lambda _: advance(None))
    view.load(QUrl(given["url"]))
    view.show()
    app.exec()


if __name__ == "__main__":
    main()
