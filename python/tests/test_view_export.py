"""statrec view --export: one file, with few points, without markup from a run. A run that cannot be exported gives one
line with the file's name, and no file remains."""
import contextlib
import io
import json
import os
import re
import unittest.mock

import statrec
from support import SAMPLES, InDirectory, begin, put, record, wants


def exported(*arguments):
    """Exit status and standard error of `statrec view ... --export page.html`."""
    from statrec.viewer.__main__ import main
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        status = main([*arguments, "--export", "page.html"])
    return status, said.getvalue()


@wants("numpy", "bokeh", "panel", "pandas")
class Export(InDirectory):
    def test_size(self):
        from statrec.viewer import export
        record("run.h5", 160)
        self.assertEqual(export.write(["run.h5"], "page.html", bins=150), 150)
        with open("page.html", encoding="utf-8") as file:
            lengths = [int(text) for text in re.findall(r'"shape":\[(\d+)\]', file.read())]
        self.assertEqual(max(lengths), 150)
        whole = os.path.getsize("page.html")
        bins_left = export.write(["run.h5"], "page.html", bins=150, most=whole - 5000)
        self.assertLess(bins_left, 150)
        self.assertLessEqual(os.path.getsize("page.html"), whole - 5000)
        with self.assertRaisesRegex(statrec.Error, "page.html: .*name fewer runs"):
            export.write(["run.h5"], "page.html", bins=100, most=1000)
        self.assertEqual(sorted(os.listdir(".")), ["page.html", "run.h5"])

    def test_no_markup_and_no_hosts(self):
        from statrec.viewer import export
        bad = "</script><script>hacked=1</script>"
        record("run.h5", 5, model=bad, config=f"{bad} = {bad}\n")
        export.write(["run.h5"], "page.html")
        with open("page.html", encoding="utf-8") as file:
            page = file.read()
        self.assertNotIn("<script>hacked", page)
        self.assertNotIn("\0", page)
        self.assertIn("default-src 'none'", page)
        self.assertIn("&lt;script&gt;hacked", page)

    def summaries(self, *runs):
        """Summaries of the foldable parts of the page for these sample runs."""
        from statrec.viewer import export
        export.write([os.path.join(SAMPLES, f"{run}.h5") for run in runs], "page.html", bins=100)
        with open("page.html", encoding="utf-8") as file:
            self.page = file.read()
        return re.findall("<summary>([^<]*)</summary>", self.page)

    def test_sites_with_values(self):
        """With BN at four sites and LN at three, only the BN sites are drawn: the others have no TID."""
        said = self.summaries("nlp_bn_first2")
        for site, drawn in (("encoder.0.norm1", True), ("encoder.1.norm1", True),
                            ("encoder.1.norm2", True), ("encoder.final", False)):
            self.assertEqual(f"tid_mean at {site}" in said, drawn, site)

    def test_what_may_be_compared_is_first(self):
        said = self.summaries("cv_bn", "nlp_bn")
        self.assertLess(said.index("tid_mean"), said.index("loss"))
        said = self.summaries("nlp_ln", "nlp_bn")
        self.assertLess(said.index("loss"), said.index("tid_mean") if "tid_mean" in said else 99)

    def test_colours_of_a_dark_browser(self):
        from statrec.viewer.draw import DARK, LIGHT
        self.summaries("nlp_bn")
        pairs, = re.findall(r"\? (\[\[.*\]\])\.reduce", self.page)
        self.assertEqual(json.loads(pairs), [list(pair) for pair in zip(LIGHT, DARK)])
        models, = re.findall(r"const docs_json = shade\('(.*)'\);", self.page)
        self.assertIn(f'"{LIGHT.ground}"', models)

    def test_a_run_that_grows(self):
        recorder, _ = begin("run.h5", flush_steps=1)
        put(recorder, 1)
        recorder.flush()
        self.assertEqual(exported("run.h5"), (0, ""))
        self.assertIn("page.html", os.listdir("."))
        recorder.close()


@wants("numpy", "bokeh", "panel", "pandas")
class Refused(InDirectory):
    def setUp(self):
        super().setUp()
        record("good.h5")

    def refused(self, pattern, *paths):
        """One line, and no file that was not there before."""
        before = sorted(os.listdir("."))
        status, said = exported("good.h5", *paths)
        self.assertRegex(said, rf"^statrec view: {pattern}\n$")
        self.assertEqual((status, sorted(os.listdir("."))), (1, before))

    def test_a_file_that_is_missing(self):
        self.refused("none.h5: no such file", "none.h5")

    def test_a_file_of_another_kind(self):
        for name, data in (("text.h5", b"no HDF5\n" * 99), ("empty.h5", b""),
                           ("zip.h5", b"PK\x03\x04" + bytes(200)),
                           ("bare.h5", b"\x89HDF\r\n\x1a\n" + bytes(900))):
            with open(name, "wb") as file:
                file.write(data)
            self.refused(rf"{name}: .+", name)

    @wants("h5py")
    def test_hdf5_of_another_program(self):
        import h5py
        with h5py.File("other.h5", "w") as file:
            file["x"] = [1.0, 2.0]
        self.refused(r"other.h5: .+", "other.h5")

    def test_a_file_that_ends_early(self):
        record("whole.h5", 200)
        with open("whole.h5", "rb") as file:
            data = file.read()
        for size in (7, 700, len(data) // 2, len(data) - 5000, len(data) - 1):
            with open("cut.h5", "wb") as file:
                file.write(data[:size])
            self.refused(r"cut.h5: .+", "cut.h5")

    def test_a_file_without_permission(self):
        """libc's message, simulated: the superuser may read everything."""
        real = statrec._file.File.__init__

        def denied(file, path, *rest, **options):
            if str(path).endswith("closed.h5"):
                raise PermissionError(13, "Permission denied", path)
            real(file, path, *rest, **options)
        record("closed.h5")
        with unittest.mock.patch.object(statrec._file.File, "__init__", denied):
            self.refused("closed.h5: Permission denied", "closed.h5")

    def test_values_that_do_not_fit_their_sums(self):
        """Damage within the file, which opening it does not see."""
        record("hurt.h5", 400)
        with statrec.open("hurt.h5") as run:
            loss = bytes(memoryview(run.steps["loss"]).cast("B"))
        with open("hurt.h5", "r+b") as file:
            data = file.read()
            at = data.find(loss[64:1024])
            if at < 0:
                self.skipTest("the losses are compressed")
            file.seek(at + 100)
            file.write(bytes(8 * [255]))
        self.refused(r"hurt.h5: .+", "hurt.h5")

    def test_no_place_for_the_page(self):
        from statrec.viewer import export
        os.mkdir("folder.html")
        for output, text in (("good.h5/page.html", "Not a directory"),
                             ("none/page.html", "No such file or directory"),
                             ("folder.html", "Is a directory")):
            with self.assertRaisesRegex(statrec.Error, f"^{output}: {text}$"):
                export.write(["good.h5"], output)
        with unittest.mock.patch.object(os, "access", return_value=False), \
                self.assertRaisesRegex(statrec.Error, "^page.html: Permission denied$"):
            export.write(["good.h5"], "page.html")
        self.assertEqual(sorted(os.listdir(".")), ["folder.html", "good.h5"])
        self.assertEqual(os.listdir("folder.html"), [])

    def test_a_disk_that_is_full(self):
        from statrec.viewer import export
        with open("page.html", "w", encoding="utf-8") as file:
            file.write("old")
        with unittest.mock.patch.object(os, "replace", side_effect=OSError(28, "No space left")), \
                self.assertRaisesRegex(statrec.Error, "^page.html: No space left$"):
            export.write(["good.h5"], "page.html")
        self.assertEqual(sorted(os.listdir(".")), ["good.h5", "page.html"])
        with open("page.html", encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")
