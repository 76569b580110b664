"""usage: test_view_browser.py [-v] [NAME...]

The page of `statrec view` in a real browser: each panel drawn, hover, clicks, zoom, a growing run, an
address that restores its view, files whose numbers are those of the stat-* programs. Every page must
leave the console without errors and ask no other host. Needs chromium with its driver, selenium, bokeh
and panel; exit status 77: skipped. VIEW_SCREENSHOTS=DIRECTORY keeps pictures.
"""
import csv
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from urllib.parse import urlsplit

try:
    import bokeh  # noqa: F401
    import numpy
    import panel  # noqa: F401
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains

    import statrec
except ImportError as missing:
    print(f"skip: no python3 with selenium, bokeh, panel and statrec ({missing})")
    sys.exit(77)

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLES = os.path.join(TOP, "sample_runs")
PANELS = ("losses", "depth", "site", "features", "step", "runs", "spectra")
PATIENCE = 20  # seconds

# Finds elements also below shadow roots; views of Bokeh by the name of their model.
HELPERS = """
window.deep = function(selector, root) {
  const found = [], look = (node) => {
    found.push(...node.querySelectorAll(selector));
    for (const one of node.querySelectorAll('*')) if (one.shadowRoot) look(one.shadowRoot);
  };
  look(root || document);
  return found;
};
window.model = function(name) { return Bokeh.documents[0].get_model_by_name(name); };
window.view = function(name) {
  const seen = new Set();
  const look = (one) => {
    if (!one || seen.has(one)) return null;
    seen.add(one);
    if (one.model && one.model.name === name) return one;
    for (const child of one.child_views ? one.child_views.values ? one.child_views.values() : one.child_views : []) {
      const found = look(child);
      if (found) return found;
    }
    return null;
  };
  for (const root of Object.values(Bokeh.index)) { const found = look(root); if (found) return found; }
  return null;
};
"""


def until(condition, what, patience=PATIENCE):
    """The first true value of condition()."""
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.1)
