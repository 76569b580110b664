/* test_templates.c -- rejected lines of a figure template, each with file, line and problem. Also a
 * user's choices and words. */
#include <string.h>

#include "plot/template/plot_controls.h"
#include "plot/template/plot_template.h"
#include "testing/check.h"
#include "testing/programs.h"

#define BEGIN "#: title t\n#: table a stat-tid {run}\n"

static sr_status read_text(const char *text, plot_template *t, sr_failure *why) {
    program_write("t.gp", text);
    return plot_template_read(program_file("t.gp"), t, why);
}

static void check_refused(const char *text, const char *part) {
    plot_template t;
    sr_failure why = {0};
    if (read_text(text, &t, &why) == SR_OK) fail_msg("not refused: %s", text);
    if (!strstr(why.text, part)) fail_msg("no '%s' in '%s' of %s", part, why.text, text);
}

static void test_lines(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"#: title t\n#: runs many\n", ":2: not a number of runs: 'many'"},
        {"#: runs 0\n", ":1: not a number of runs: '0'"},
        {"#: size 3\n", ":1: not a size in inches: '3'"},
        {"#: size 0.2 3\n", "not a size"},
        {"#: size 3 0.2\n", "not a size"},
        {"#: size 3 2 1\n", "not a size"},
        {"#: question whether\n", "no such question: 'whether'"},
        {"#: tasks many\n", "tasks are one, not 'many'"},
        {"#: lines sites\n", "lines are runs, not 'sites'"},
        {"#: controls z\n", "no such control in 'z'"},
        {"#: frame 1\n", "unknown word after `#:`: 'frame'"},
        {"#: table\n", "no name, or one used before: ''"},
        {"#: table 1st stat-tid\n", "no name, or one used before: '1st'"},
        {"#: table a stat-tid\n#: table a stat-tid\n", ":2: no name, or one used before: 'a'"},
        {"#: table a\n", "no command for table 'a'"},
        {"#: curves a x x y y\n", "no table named 'a'"},
        {"#: curves\n", "no table named ''"},
        {BEGIN "#: curves a x step\n", ":3: curves need `x COLUMN y COLUMNS`: 'a'"},
        {BEGIN "#: curves a y mu\n", "curves need"},
        {BEGIN "#: curves a x step y mu by\n", "curves need"},
        {BEGIN "#: curves a x step y mu buckets 0\n", "cannot read '0'"},
        {BEGIN "#: curves a x step,percent y mu\n", "cannot read 'step'"},
        {BEGIN "#: curves a x 1 y mu\n", "cannot read '1'"},
        {BEGIN "#: curves a x step y ,\n", "cannot read ','"},
        {BEGIN "#: curves a from step y mu\n", "not by, x, y or buckets: 'from'"},
        {"#: published\n", "published needs TABLES and METRICS, not ''"},
        {"#: published pn\n", "published needs TABLES and METRICS, not 'pn'"},
        {"#: published pn 1\n", "cannot read '1'"},
        {"#: choice\n", "choice needs NAME WORD|WORD, not ''"},
        {"#: choice form\n", "choice needs NAME WORD|WORD, not 'form'"},
        {"#: choice 1 a|b help\n", "choice needs NAME WORD|WORD, not '1'"},
        {"#: choice form a help\n", "'form'"},
        {"#: choice form a||b help\n", "'form'"},
        {"#: choice form |a help\n", "'form'"},
        {"#: choice form a| help\n", "'form'"},
        {"#: choice form a|b h\n#: choice form a|b h\n", ":2:"},
        {"#: word\n", "word needs NAME CHOICE TEXT|TEXT, not ''"},
        {"#: word w\n", "word needs NAME CHOICE TEXT|TEXT, not 'w'"},
        {"#: word 1 form a|b\n", "word needs NAME CHOICE TEXT|TEXT, not '1'"},
        {"#: word w form a|b\n", "no choice of that name before the word 'w'"},
        {"#: choice form a|b h\n#: word w form a\n", ":2:"},
        {"#: choice form a|b h\n#: word w form a|b\n#: word v w a|b\n",
         "no choice of that name before the word 'v'"},
        {"", "is empty"},
        {"set xrange [0:1]\n", "no `#: title` or no `#: table` line"},
        {"#: table a stat-tid\n", "no `#: title` or no `#: table` line"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_refused(wrong[i][0], wrong[i][1]);
}

/* The largest number of items of a kind, and one more. */
static void test_too_many(void **state) {
    (void)state;
    char text[8192] = "#: table a stat-tid";
    for (int i = 0; i < 100; i++) strcat(text, " w");
    check_refused(text, "too many words at 'w'");
    *text = 0;
    for (int i = 0; i < 40; i++) snprintf(text + strlen(text), 64, "#: table t%d stat-tid\n", i);
    check_refused(text, "too many tables at 't");
    *text = 0;
    for (int i = 0; i < 100; i++) snprintf(text + strlen(text), 64, "#: choice c%d a|b h\n", i);
    check_refused(text, "too many choices and words at 'c");
    strcpy(text, "#: choice form ");
    for (int i = 0; i < 1000; i++) strcat(text, "a|");
    check_refused(strcat(text, "a help\n"), "too long: 'form'");
    strcpy(text, BEGIN "#: curves a x step y ");
    for (int i = 0; i < 99; i++) strcat(text, "c,");
    check_refused(strcat(text, "c\n"), "cannot read 'c'");
}

/* -- a user's choices ------------------------------------------------------------------------ */

static const char choosing[] =
    BEGIN "#: choice form plain|relative h\n#: word mu form mu|mu_relative\n"
          "#: controls x y scale\n#: stat mu_B\n#: curves a x step y {stat},{mu}\n";

static sr_status choose(const plot_choice *c, const plot_controls *k, plot_template *t,
                        sr_failure *why) {
    sr_failure unread = {0};
    check_ok(read_text(choosing, t, &unread), &unread);
    sr_status status = plot_controls_choose(t, k, why);
    return status == SR_OK ? plot_template_choose(t, c, why) : status;
}

static plot_controls no_controls(void) {
    return (plot_controls){
        .title = "", .size = "", .xrange = "", .yrange = "", .steps = "", .samples = ""};
}

static void check_choice(const plot_choice *c, const char *part) {
    plot_template t;
    sr_failure why = {0};
    const plot_controls k = no_controls();
    assert_int_equal(choose(c, &k, &t, &why), SR_USAGE);
    if (!strstr(why.text, part)) fail_msg("no '%s' in '%s'", part, why.text);
    plot_template_free(&t);
}

static void test_choices(void **state) {
    (void)state;
    plot_template t;
    sr_failure why = {0};
    plot_choice c = PLOT_NO_CHOICE;
    const plot_controls k = no_controls();
    c.words = 1, c.word[0].name = "form", c.word[0].value = "relative", c.stat = "g_mu";
    check_ok(choose(&c, &k, &t, &why), &why);
    assert_string_equal(t.table[0].y[0], "g_mu");
    assert_string_equal(t.table[0].y[1], "mu_relative");
    plot_template_free(&t);
    c.word[0].value = "neither";
    check_choice(&c, "neither");
    c.word[0].name = "mu";
    check_choice(&c, "mu");
    c.word[0].name = "shape";
    check_choice(&c, "shape");
    c.words = 0, c.stat = "a,b";
    check_choice(&c, "takes one statistic, not 'a,b'");
    c.stat = "", c.site = "first";
    check_choice(&c, "takes no --site");
    c.site = "", c.metric = "loss";
    check_choice(&c, "takes no --metric");
    c.metric = "", c.step = "1";
    check_choice(&c, "takes no --step");
    c.step = "", c.published = true;
    check_choice(&c, "takes no --published");
}

static void check_controls(plot_controls k, bool taken) {
    plot_template t;
    sr_failure why = {0};
    const plot_choice c = PLOT_NO_CHOICE;
    const sr_status status = choose(&c, &k, &t, &why);
    if ((status == SR_OK) != taken)
        fail_msg("%s %s %s: %s", k.xrange, k.yrange, k.size, status == SR_OK ? "taken" : why.text);
    plot_template_free(&t);
}

static void test_ranges(void **state) {
    (void)state;
    static const char *const ranges[] = {":1",    "0:",    "1:0", "0:1x", "0-1",
                                         "inf:1", "0:inf", "x:1", "0:0"};
    static const char *const sizes[] = {"3",     "x3",    "3x",    "3x2y",    "0.5x2",
                                        "200x2", "3x0.5", "3x200", "nonsense"};
    plot_controls k = no_controls();
    k.xrange = "-1:2", k.yrange = "0:1", k.size = "3x2";
    check_controls(k, true);
    k.log = true; /* 0 has no logarithm */
    check_controls(k, false);
    k.yrange = "0.1:1";
    check_controls(k, true);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        k = no_controls();
        k.xrange = ranges[i];
        check_controls(k, false);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        k = no_controls();
        k.size = sizes[i];
        check_controls(k, false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
