"""The local web app: photographs in, results out, in the browser.

A small server (:mod:`.server`) shows pages and keeps what they show; everything that computes runs in processes of
its own (:mod:`.worker`), one for each open capture and one for each solve. What is done by hand is kept beside the
photographs (:mod:`photostereo.capture.edits`).
"""
