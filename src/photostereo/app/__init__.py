"""The local web app: photographs in, results out, in the browser.

A small server (:mod:`.server`) serves the pages and holds their state. All computation runs in separate processes
(:mod:`.worker`), one per open capture and one per solve. Manual corrections are stored beside the photographs
(:mod:`photostereo.capture.edits`).
"""
