"""usage: test_view_browser.py [-v] [NAME...]

The page of `statrec view` in a real browser: each panel is drawn; hover, clicks, zoom, a growing run. An address
restores its view; downloaded files have the numbers of the stat-* programs. No page may cause console errors or contact
another host. Needs chromium with its driver, selenium, bokeh and panel; exit status 77: skipped.
VIEW_SCREENSHOTS=DIRECTORY keeps pictures.
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
    from selenium.common.exceptions import JavascriptException
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
PATIENCE = int(os.environ.get("VIEW_PATIENCE", "60"))  # seconds

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
window.words = function(node) {
  if (node.nodeType === 3) return node.data;
  if (['STYLE', 'SCRIPT'].includes(node.tagName)) return '';
  const parts = [...(node.shadowRoot ? node.shadowRoot.childNodes : []), ...node.childNodes];
  return parts.map(words).join(' ');
};
window.said = function(selector) { return deep(selector).map(words).join('\\n'); };
window.view = function(name) {
  return window.Bokeh && Array.from(
    Bokeh.index.query((one) => one.model && one.model.name === name)).pop();
};
window.model = function(name) { return view(name).model; };
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


class Server:
    """The program statrec view, as a user starts it."""

    def __init__(self, *paths):
        environment = {**os.environ, "STATREC_PYTHON": sys.executable}
        self.process = subprocess.Popen(["statrec", "view", "--no-browser", *paths], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=environment)
        line = self.process.stdout.readline()
        if ": http://127.0.0.1:" not in line:
            raise AssertionError(f"no address: {line}")
        self.address = line.split(": ", 1)[1].strip()
        self.port = urlsplit(self.address).port

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


def chromium(directory):
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--window-size=1280,1000",
                 "--disable-dev-shm-usage", "--enable-unsafe-swiftshader"):
        options.add_argument(word)
    options.binary_location = BROWSER
    options.add_experimental_option("prefs", {"download.default_directory": directory})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(PATIENCE)
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": HELPERS})
    return driver


def record(path, steps, sites=3, width=6, first=1, recorder=None, **options):
    """A run, or further steps of it; returns the open recorder."""
    random = numpy.random.default_rng(first)
    if recorder is None:
        recorder = statrec.Recorder(path, program="tests", flush_steps=1, **options)
        for site in range(sites):
            recorder.add_site(f"layer{site}.norm", norm="bn", kind="conv", width=width, eps=1e-5,
                              alpha=0.9)
    for step in range(first, first + steps):
        recorder.begin_step(step)
        for site in range(sites):
            mean = random.normal(size=width)
            recorder.put_forward(site, 32, mean, numpy.ones(width), mean * mean + 1,
                                 numpy.ones(width))
        recorder.end_step(update=step, tokens=32, loss=5 / step + 0.1 * random.random(), lr=0.1,
                          epoch=step / 100)
    return recorder


class InBrowser(unittest.TestCase):
    """One browser for all; each class serves its own runs."""

    @classmethod
    def setUpClass(cls):
        cls.directory = os.path.realpath(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.server = Server(*cls.runs())
        cls.addClassCleanup(cls.server.stop)
        cls.browser = chromium(cls.directory)
        cls.addClassCleanup(cls.browser.quit)

    def open(self, query=""):
        """Opens the page and waits until every panel that fits is drawn."""
        self.browser.get(self.server.address + query)
        self.wait("return !!(window.Bokeh && Bokeh.documents && Bokeh.documents[0] && "
                  "view('losses-loss') && said('.panel-step').includes('stat-features'))", "the panels")

    def tearDown(self):
        """No error on the console, no request to another host."""
        wrong = [entry["message"] for entry in self.browser.get_log("browser")
                 if entry["level"] == "SEVERE"]
        hosts = set()
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                parameters = message["params"]
                url = parameters.get("url") or parameters["request"]["url"]
                hosts.add(urlsplit(url).hostname)
        self.assertEqual(wrong, [])
        self.assertLessEqual(hosts, {"127.0.0.1", None, ""})
        kept = os.environ.get("VIEW_SCREENSHOTS")
        if kept:
            self.browser.save_screenshot(os.path.join(kept, f"{self.id().split('.')[-1]}.png"))

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def wait(self, script, what, *arguments):
        def holds():
            try:
                return self.js(script, *arguments)
            except JavascriptException:  # its object does not exist yet
                return None
        return until(holds, what)

    def place(self, name, x, y):
        """Scrolls a figure into view; returns the page pixels of a point in data units, once they are stable."""
        script = """
          const one = view(arguments[0]), box = one.el.getBoundingClientRect();
          return [box.x + one.frame.x_scale.compute(arguments[1]),
                  box.y + one.frame.y_scale.compute(arguments[2])];"""
        def rests():
            self.js("view(arguments[0]).el.scrollIntoView({block: 'center'})", name)
            time.sleep(0.5)
            before, seen[:] = list(seen), [int(part) for part in self.js(script, name, x, y)]
            return before == seen
        seen = []
        until(rests, f"{name} at rest")
        return seen

    def point(self, name, x, y):
        """ActionChains with the pointer there."""
        actions = ActionChains(self.browser)
        actions.w3c_actions.pointer_action.move_to_location(*self.place(name, x, y))
        return actions

    def export(self, *paths):
        """Opens the file of statrec view --export from the disk."""
        path = os.path.join(self.directory, "page.html")
        subprocess.run(["statrec", "view", "--export", path, "--", *paths], check=True,
                       env={**os.environ, "STATREC_PYTHON": sys.executable})
        self.assertLess(os.path.getsize(path), 20 << 20)
        self.browser.get("file://" + path)
        self.wait("return !!(window.Bokeh && Bokeh.documents && Bokeh.documents[0] && "
                  "view('losses-loss'))", "the figures of the file")

    def search(self):
        return self.js("return location.search")

    def text(self, selector):
        return " ".join(self.js("return said(arguments[0])", selector).split())

    def column(self, name, column):
        """A column of the data of the first line or image of a figure."""
        return self.js("""
          const one = model(arguments[0]).renderers.find((r) => r.data_source.get_column(arguments[1]));
          return Array.from(one.data_source.get_column(arguments[1]),
                            (value) => value.length === undefined || typeof value === 'string'
                                       ? value : Array.from(value));""", name, column)

    def press(self, label, panel):
        """Presses a button of a panel."""
        self.js("""
          const card = deep('.panel-' + arguments[1])[0];
          const all = deep('button', card.shadowRoot);
          all.find((one) => one.innerText.includes(arguments[0])).click();""", label, panel)

    def download(self, label, panel, name):
        """The bytes of a file that a button saves."""
        path = os.path.join(self.directory, name)
        if os.path.exists(path):
            os.unlink(path)
        self.press(label, panel)
        until(lambda: os.path.exists(path) and os.path.getsize(path) > 0, f"{name} is saved")
        with open(path, "rb") as file:
            return file.read()


class Looking(InBrowser):
    """Sample runs: every panel, hover, clicks, zoom, address, files."""

    @classmethod
    def runs(cls):
        return [os.path.join(SAMPLES, name) for name in ("cv_bn_every.h5", "nlp_bn.h5")]

    def test_panels_are_drawn(self):
        self.open()
        self.assertEqual(self.search(), "")
        for name in ("losses-loss", "losses-lr", "losses-grad_norm", "losses-metric", "depth",
                     "site", "features", "feature", "histogram", "quantiles", "runs-0"):
            self.js("view(arguments[0]).el.scrollIntoView({block: 'center'})", name)
            colours = self.wait(COLOURS, f"{name} is drawn", name)
            self.assertGreater(colours, 8, name)
        for name in ("losses", "depth", "site", "features", "step", "runs"):
            self.assertIn("statplot" if name != "runs" else "stat-curve", self.text(f".panel-{name}"))
        self.wait("return deep('.verdict').some((one) => one.innerText.includes('NOTHING FOUND'))",
                  "the verdict")

    def test_folded_panel(self):
        self.open("?run=nlp_bn.h5")
        self.js("""deep('.card-header').find((one) => words(one).includes('Spectra')).click()""")
        self.wait("return !!view('spectra-0')", "the spectra")
        self.assertIn("effective rank", self.text(".panel-spectra"))

    def test_hover(self):
        self.open()
        self.point("depth", 80, 0.5).perform()
        told = self.wait("return deep('.bk-Tooltip').map((one) => one.shadowRoot.textContent)"
                         ".find((text) => text.includes('stage2'))", "a hover text")
        rows = statrec.table("stat-scalar", self.runs()[0], site="stage2.0.norm1", stat="tid_var",
                             per_step=True, phase="80:80")["rows"]
        self.assertIn("site:stage2.0.norm1", told.replace(" ", ""))
        self.assertIn(f"{rows[0][-1]:.6g}"[:6], told)
        self.assertIn("sqrt(sigma2_B)", told)

    def test_click_on_a_site(self):
        self.open()
        self.assertEqual(self.js("return model('site').title.text"), "tid_mean at stem")
        self.point("depth", 80, 0.5).click().perform()
        self.wait("return model('site').title.text === 'tid_mean at stage2.0.norm1'", "the site")
        self.assertIn("site=stage2.0.norm1", self.search())

    def test_click_on_a_feature(self):
        self.open()
        rows = len(self.column("features", "name"))
        self.point("features", 60, rows - 3 - 0.5).click().perform()
        self.wait("return model('feature').title.text.startsWith('feature 3 ')", "the feature")
        self.wait("return model('histogram').title.text.endsWith('step 60')", "the step")
        self.assertIn("feature=3&at=60", self.search())
        with statrec.open(self.runs()[0]) as run:
            wanted = run.vector("mu_B", "stem")[:, 3]
        numpy.testing.assert_allclose(self.column("feature", "median"), wanted, rtol=1e-6)

    def test_address_restores_the_view(self):
        query = ("?x=percent&from=25.0&to=50.0&stat=tid_mean&site=stage2.0.norm1&vector=sigma2_B"
                 "&order=largest&feature=2&log=losses&smooth=3")
        self.open(query)
        self.assertEqual(self.js("return model('site').title.text"), "tid_mean at stage2.0.norm1")
        self.assertEqual(self.js("return model('depth').title.text"), "tid_mean")
        self.assertEqual(self.js("const x = model('depth').x_range; return [x.start, x.end]"),
                         [25, 50])
        self.assertTrue(self.js("return model('feature').title.text").startswith(
            "feature 2 of sigma2_B at stage2.0.norm1"))
        self.assertIn("statplot curves", self.text(".panel-losses"))
        self.assertIn("--steps=40:80 --log --smooth=3", self.text(".panel-losses"))

    def test_what_is_wrong_in_an_address(self):
        self.open("?x=depth&<script>window.hacked=1</script>=1&run=../../etc/passwd")
        self.assertIn("x=depth", self.text("[role=alert]"))
        self.assertFalse(self.js("return !!window.hacked"))
        self.assertIn("cv_bn_every.h5", self.text(".state"))

    def test_saved_data(self):
        self.open("?from=99.5&to=130.5")
        rows = list(csv.reader(self.download("Save data", "site", "site.csv").decode().splitlines()))
        self.assertEqual(rows[0], ["site", "first_step", "last_step", "least", "median", "largest"])
        told = statrec.table("stat-scalar", self.runs()[0], site="stem", stat="tid_mean",
                             per_step=True, phase="100:130")["rows"]
        wanted = {row[2]: row[-1] for row in told}
        got = {int(row[1]): float(row[4]) for row in rows[1:] if 100 <= int(row[1]) <= 130}
        self.assertEqual(set(got), set(wanted))
        for step, value in wanted.items():
            self.assertAlmostEqual(got[step], value, delta=1e-7 * abs(value), msg=str(step))

    def test_saved_figure(self):
        if not shutil.which("gnuplot"):
            self.skipTest("no gnuplot")
        self.open("?from=99.5&to=130.5")
        self.assertEqual(self.download("Save figure", "depth", "depth.pdf")[:5], b"%PDF-")

    def test_dark(self):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark"}]})
        try:
            self.open()
            self.wait("return model('site').background_fill_color === '#1B1B1B'", "dark")
        finally:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def test_keyboard(self):
        """Every control is reached by the key Tab, or is a native one that is."""
        self.open()
        for label in ("run", "x axis", "from", "to", "statistic", "site", "vector", "feature"):
            self.assertTrue(self.js("""
              const names = deep('label').filter((one) => one.innerText.trim() === arguments[0]);
              return names.some((one) => deep('select, input', one.getRootNode())
                .some((input) => input.tabIndex >= 0));""", label), label)
        self.assertTrue(self.js("return deep('summary').length > 5"))


class Comparing(InBrowser):
    @classmethod
    def runs(cls):
        return [os.path.join(SAMPLES, name)
                for name in ("nlp_bn.h5", "nlp_ln.h5", "cv_bn.h5", "nlp_pn.h5")]

    def test_ticked_runs_are_drawn(self):
        self.open()
        self.wait("return deep('.tabulator-row').length === 4", "the table of runs")
        self.js("deep('.tabulator-row input[type=checkbox]')[1].click()")
        self.wait("return model('runs-0').renderers.filter((one) => one.glyph.type === 'Line')"
                  ".length === 2", "two curves")
        self.assertIn("with=nlp_ln.h5", self.search())
        self.assertIn("nlp_bn.h5", self.text(".panel-runs"))

    def test_difference_and_warning(self):
        self.open("?with=cv_bn.h5&compare=dist_mu&mode=difference&x=percent")
        self.wait("return said('.panel-runs').includes('Warning of statplot')", "the warning")
        self.assertEqual(len(self.js("return model('runs-0').title.text").split(" minus ")), 2)


class Growing(InBrowser):
    @classmethod
    def runs(cls):
        cls.path = os.path.join(cls.directory, "live.h5")
        cls.recorder = record(cls.path, 50, vectors_every=10)
        cls.recorder.flush()
        return [cls.path]

    def test_grows_and_ends(self):
        self.open()
        self.assertIn("running · step 50", self.text(".state"))
        self.assertEqual(self.js("return model('losses-loss').x_range.end"), 50)
        type(self).recorder = record(self.path, 30, first=51, recorder=self.recorder)
        self.recorder.flush()
        self.wait("return model('losses-loss').x_range.end === 80", "80 steps on the axis")
        until(lambda: len(self.column("losses-loss", "median")) == 80, "80 steps in the figure")
        self.assertIn("step 80", self.text(".state"))
        self.recorder.close()
        until(lambda: "complete" in self.text(".state"), "the end of the run")
        self.check_damage()

    def check_damage(self):
        """The page stays open and reports the change of its file."""
        os.rename(self.path, self.path + ".away")
        until(lambda: "the file is gone" in self.text("[role=alert]"), "a file that is gone")
        with open(self.path, "wb") as file:
            file.write(b"\x89HDF\r\n\x1a\n" + bytes(5000))
        until(lambda: "gone" not in self.text("[role=alert]") and self.text("[role=alert]"),
              "a damaged file")
        os.replace(self.path + ".away", self.path)
        until(lambda: not self.text("[role=alert]"), "the file is there again")
        self.assertEqual(len(self.column("losses-loss", "median")), 80)


class Hostile(InBrowser):
    BAD = "<img src=x onerror=hacked=1>"

    @classmethod
    def runs(cls):
        path = cls.path = os.path.join(cls.directory, "<b onclick=x>.h5")
        recorder = statrec.Recorder(path, program="tests", model=cls.BAD, data="x" * 10_000_000,
                                    config=f"{cls.BAD} = {cls.BAD}\n")
        for name in (cls.BAD, "$$x$$", "@name{0}"):
            recorder.add_site(name, norm=cls.BAD[:20], kind="<i>", width=3, eps=1e-5, alpha=0.9)
        recorder.add_metric("<s>m", cls.BAD, cls.BAD, better="less")
        own = recorder.declare_scalar("<u>own", cls.BAD, cls.BAD, scope="step")
        for step in range(1, 30):
            recorder.begin_step(step)
            for site in range(3):
                recorder.put_forward(site, 8, [1.0, 2, 3], [1.0] * 3, [2.0, 5, 10], [1.0] * 3)
            recorder.put_step_scalar(own, step)
            recorder.end_step(update=step, tokens=8, loss=1 / step)
        recorder.evaluate(29, **{"<s>m": 1.0})
        recorder.close()
        return [path, os.path.join(SAMPLES, "cv_bn.h5")]

    def test_names_are_texts(self):
        self.open()
        self.point("depth", 15, 2.5).perform()
        self.wait("return deep('.bk-Tooltip').some((one) => one.shadowRoot.textContent.includes("
                  "'onerror'))", "the hover text")
        self.js("deep('.card-header').filter((one) => words(one).includes('Scalars of the recording'))"
                ".forEach((one) => one.click())")
        self.wait("return !!view('own')", "the own scalar")
        self.wait("return deep('.tabulator-row').length === 2", "the table of runs")
        self.assertFalse(self.js("return !!window.hacked"))
        self.assertEqual(self.js("return deep('img, s, u, b[onclick]').length"), 0)
        self.assertIn(self.BAD, self.text(".panel-site"))
        self.assertLess(self.js("return document.documentElement.scrollWidth"), 2000)

    def test_file(self):
        self.export(self.path, os.path.join(SAMPLES, "cv_bn.h5"))
        self.js("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        self.wait("return !!view('own')", "the own scalar")
        self.assertFalse(self.js("return !!window.hacked"))
        self.assertEqual(self.js("return deep('img, s, u, b[onclick]').length"), 0)
        self.assertIn(self.BAD, self.text("main"))
        self.assertEqual(self.js("return model('runs-0').renderers.filter("
                                 "(one) => one.glyph.type === 'Line').length"), 2)
        self.assertGreater(self.js("return model('runs-0').x_range.end"), 29)


class Guarded(unittest.TestCase):
    """Without the token the server does not answer, and other machines cannot reach it."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(os.path.join(SAMPLES, "cv_bn.h5"))
        cls.addClassCleanup(cls.server.stop)
        cls.token = urlsplit(cls.server.address).path.strip("/")

    def status(self, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def test_token(self):
        self.assertGreaterEqual(len(self.token), 32)
        for path in ("/", "/static/js/bokeh.min.js", "/ws", "/metadata", "/autoload.js",
                     "/static/extensions/panel/panel.min.js", "/favicon.ico"):
            for before in ("", "/" + self.token[:-1], "/" + self.token + "x"):
                self.assertIn(self.status(before + path), (403, 404), before + path)
            if path in ("/", "/static/js/bokeh.min.js"):
                self.assertEqual(self.status(f"/{self.token}{path}"), 200)

    def test_websocket_of_another_page(self):
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        path = f"/{self.token}/ws"
        self.assertEqual(self.status(path, Origin="http://example.org", **headers), 403)
        self.assertNotIn(self.status(path, Origin="http://localhost:9999", **headers), (403, 404))
        self.assertEqual(self.status("/ws", Origin=f"http://127.0.0.1:{self.server.port}",
                                     **headers), 404)

    def test_loopback_alone(self):
        with open("/proc/net/tcp", encoding="ascii") as table:
            places = [line.split()[1] for line in list(table)[1:] if line.split()[3] == "0A"]
        ours = [place for place in places if place.endswith(f":{self.server.port:04X}")]
        self.assertEqual(ours, [f"0100007F:{self.server.port:04X}"])


# Colours of the canvases of a figure.
COLOURS = """
  const one = view(arguments[0]), seen = new Set();
  if (!one) return 0;
  for (const canvas of deep('canvas', one.el.shadowRoot)) {
    if (!canvas.width || !canvas.height) continue;
    const copy = document.createElement('canvas');
    copy.width = canvas.width; copy.height = canvas.height;
    const context = copy.getContext('2d');
    context.drawImage(canvas, 0, 0);
    const data = new Uint32Array(context.getImageData(0, 0, copy.width, copy.height).data.buffer);
    for (let i = 0; i < data.length; i += 7) seen.add(data[i]);
  }
  return seen.size;
"""


class Zooming(InBrowser):
    """20,000 steps: bins, and single steps in a zoom."""

    @classmethod
    def runs(cls):
        path = os.path.join(cls.directory, "long.h5")
        recorder = statrec.Recorder(path, program="tests", vectors=False)
        recorder.add_site("norm", norm="bn", kind="conv", width=4, eps=1e-5, alpha=0.9)
        random = numpy.random.default_rng(3)
        for step in range(1, 20_001):
            recorder.begin_step(step)
            recorder.put_scalar(0, "tid_mean", random.random())
            recorder.put_scalar(0, "tid_var", random.random())
            recorder.end_step(update=step, tokens=1, loss=random.random(), lr=1.0, grad_norm=1.0)
        recorder.close()
        cls.path = path
        return [path]

    def open(self, query=""):
        self.browser.get(self.server.address + query)
        self.wait("return !!(window.Bokeh && Bokeh.documents && Bokeh.documents[0] && "
                  "view('losses-loss') && said('.panel-site').includes('stat-scalar'))",
                  "the panels")

    def test_zoom_reads_single_steps(self):
        self.open()
        self.assertLess(len(self.column("losses-loss", "median")), 3000)
        left = self.place("losses-loss", 10_000, 0.5)
        right = self.place("losses-loss", 10_600, 0.5)
        actions = ActionChains(self.browser)
        mouse = actions.w3c_actions.pointer_action
        mouse.move_to_location(*left)
        mouse.pointer_down()
        mouse.move_to_location((left[0] + right[0]) // 2, left[1])
        mouse.move_to_location(*right)
        mouse.pointer_up()
        actions.perform()
        until(lambda: "from=" in self.search(), "the zoom in the address")
        until(lambda: len(self.column("losses-loss", "x")) < 2000
              and numpy.all(numpy.diff(self.column("losses-loss", "x")) == 1), "single steps")
        steps = self.column("losses-loss", "x")
        self.assertLess(abs(steps[0] - 10_000), 60)
        with statrec.open(self.path) as run:
            wanted = run.steps["loss"][int(steps[0]) - 1:int(steps[-1])]
        numpy.testing.assert_allclose(self.column("losses-loss", "median"), wanted)
        until(lambda: f"--steps={int(steps[0]) + 1}:{int(steps[-1]) - 1}"
              in self.text(".panel-losses"), "the steps in the command")
        self.press_whole()

    def test_file(self):
        """The page as a file from the disk: bins of the programs, drawn, hover, linked zoom."""
        self.export(self.path)
        told = statrec.table("stat-scalar", self.path, site="norm", stat="tid_mean", per_step=True,
                             buckets=2000)["rows"]
        wanted = numpy.array([row[-1] for row in told], dtype=float).reshape(-1, 3)
        for name, part in (("least", 0), ("median", 1), ("largest", 2)):
            numpy.testing.assert_allclose(self.column("site", name), wanted[:, part], rtol=1e-6)
        self.assertEqual(len(self.column("losses-loss", "x")), 2000)
        for name in ("losses-loss", "depth", "site"):
            self.js("view(arguments[0]).el.scrollIntoView({block: 'center'})", name)
            self.assertGreater(self.wait(COLOURS, f"{name} is drawn", name), 8, name)
        self.point("site", 10_000, 0.5).perform()
        self.wait("return deep('.bk-Tooltip').some((one) => one.shadowRoot.textContent.includes("
                  "'definition'))", "a hover text")
        self.js("model('losses-loss').x_range.start = 5000")
        self.assertEqual(self.js("return model('site').x_range.start"), 5000)
        self.assertIn("statplot curves", self.text("main"))
        self.assertIn("notable: inference at norm", self.text(".verdict"))

    def test_dark_file(self):
        """The file follows the browser's scheme, figures too, also when it changes."""
        ground = "return model('losses-loss').background_fill_color"
        self.export(self.path)
        self.assertEqual(self.js(ground), "#FFFFFF")
        scheme = {"name": "prefers-color-scheme", "value": "dark"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        try:
            until(lambda: self.js("return view('losses-loss') && "
                                  "model('losses-loss').background_fill_color === '#1B1B1B'"),
                  "dark figures")
            self.assertEqual(self.js("return getComputedStyle(document.body).backgroundColor"),
                             "rgb(27, 27, 27)")
        finally:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def press_whole(self):
        self.js("deep('button').find((one) => one.innerText === 'whole run').click()")
        self.wait("return location.search === '' && model('losses-loss').x_range.end === 20000",
                  "the whole run")


if __name__ == "__main__":
    if not BROWSER or not DRIVER:
        print("skip: no chromium with chromedriver")
        sys.exit(77)
    unittest.main()
