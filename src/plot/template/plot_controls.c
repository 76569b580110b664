/* Settings that users change in any figure: its title and size. In figures whose `#: controls` line
 * has the word: the ends and the kind of its axes, smoothing, and the steps:
 *
 *   x       --xrange A:B      the x axes from A to B
 *   y       --yrange A:B      the y axes (colours, in a heat map)
 *   scale   --log, --linear   the y axes
 *   smooth  --smooth N        running medians over N buckets of training (plot_curves.c)
 *   steps   --steps FROM:TO   {steps}, a phase of the analyses
 *
 * gnuplot gets variables, which style.gp's axes read. A grey line at the bottom of the figure names
 * settings that the figure does not show.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot/plot_gnuplot.h"
#include "plot/template/plot_controls.h"
#include "plot/template/plot_template.h"

static const char *const words[PLOT_CONTROLS] = {"x", "y", "scale", "smooth", "steps"};

bool plot_controls_read(plot_template *t, const char *text) {
    while (*(text += strspn(text, " \t"))) {
        const size_t length = strcspn(text, " \t");
        int i = 0;
        while (i < PLOT_CONTROLS &&
               (strlen(words[i]) != length || strncmp(words[i], text, length) != 0))
            i++;
        if (i == PLOT_CONTROLS) return false;
        t->takes_control[i] = true;
        text += length;
    }
    return true;
}

/* -- checking -------------------------------------------------------------------------------- */

/* The option that asks for a control; NULL when the user did not. */
static const char *asked(const plot_controls *c, plot_control which) {
    switch (which) {
    case PLOT_X:
        return c->xrange[0] ? "xrange" : NULL;
    case PLOT_Y:
        return c->yrange[0] ? "yrange" : NULL;
    case PLOT_SCALE:
        return c->log ? "log" : c->linear ? "linear" : NULL;
    case PLOT_SMOOTH:
        return c->smooth ? "smooth" : NULL;
    case PLOT_STEPS:
        return c->steps[0] ? "steps" : NULL;
    default:
        return NULL;
    }
}

const char *plot_controls_first(const plot_controls *c) {
    if (c->title[0]) return "title";
    if (c->size[0]) return "size";
    for (int i = 0; i < PLOT_CONTROLS; i++)
        if (asked(c, (plot_control)i)) return asked(c, (plot_control)i);
    return NULL;
}

/* "A:B" */
static sr_status read_range(const char *option, const char *text, double end[2], sr_failure *why) {
    char *middle, *rest;
    end[0] = strtod(text, &middle);
    end[1] = *middle == ':' ? strtod(middle + 1, &rest) : NAN;
    if (middle != text && *middle == ':' && rest != middle + 1 && !*rest && isfinite(end[0]) &&
        isfinite(end[1]) && end[0] < end[1])
        return SR_OK;
    return sr_fail(why, SR_USAGE, "--%s: '%.80s' is not FROM:TO with FROM below TO", option, text);
}

/* Text widths of venues, from their LaTeX styles (docs/figures.md). The height stays the figure's
 * own, and grows with its legend. */
static const struct {
    const char *name;
    double width; /* inches */
} venues[] = {
    {"icml", 3.25}, {"icml-wide", 6.75}, {"neurips", 5.5},    {"iclr", 5.5},
    {"acl", 3.03},  {"acl-wide", 6.3},   {"springer", 3.307}, {"springer-wide", 6.850},
};

/* 0 if the name is no venue. */
static double venue_width(const char *name) {
    for (size_t i = 0; i < sizeof venues / sizeof venues[0]; i++)
        if (strcmp(venues[i].name, name) == 0) return venues[i].width;
    return 0;
}

static sr_status read_size(const plot_controls *c, plot_template *t, sr_failure *why) {
    char *middle, *rest, names[128] = "";
    const double width = venue_width(c->size);
    if (!c->size[0]) return SR_OK;
    if (width > 0) return t->width = width, SR_OK;
    t->width = strtod(c->size, &middle);
    t->height = *middle == 'x' ? strtod(middle + 1, &rest) : 0;
    if (*middle == 'x' && !*rest && t->width >= 1 && t->width <= 100 && t->height >= 1 &&
        t->height <= 100)
        return SR_OK;
    for (size_t i = 0, used = 0; i < sizeof venues / sizeof venues[0]; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 venues[i].name);
    return sr_fail(why, SR_USAGE,
                   "--size: '%.80s' is not WIDTHxHEIGHT of 1 to 100 inches, as 3.25x2.5, and none "
                   "of %s",
                   c->size, names);
}

static sr_status check_words(const plot_template *t, const plot_controls *c, sr_failure *why) {
    for (int i = 0; i < PLOT_CONTROLS; i++)
        if (asked(c, (plot_control)i) && !t->takes_control[i])
            return sr_fail(why, SR_USAGE, "figure %s takes no --%s", t->name,
                           asked(c, (plot_control)i));
    if (c->log && c->linear) return sr_fail(why, SR_USAGE, "--log and --linear exclude each other");
    if (c->smooth && c->smooth % 2 == 0)
        return sr_fail(why, SR_USAGE, "--smooth: %lld is even: a running median has a middle",
                       (long long)c->smooth);
    return SR_OK;
}

static bool in_buckets(const plot_table *table) {
    for (int i = 0; i < table->words; i++)
        if (strcmp(table->word[i], "{buckets}") == 0) return table->curves;
    return false;
}

sr_status plot_controls_choose(plot_template *t, const plot_controls *c, sr_failure *why) {
    double end[2];
    sr_status status = check_words(t, c, why);
    if (status == SR_OK && c->xrange[0]) status = read_range("xrange", c->xrange, end, why);
    if (status == SR_OK && c->yrange[0]) status = read_range("yrange", c->yrange, end, why);
    if (status == SR_OK && c->yrange[0] && c->log && end[0] <= 0)
        status =
            sr_fail(why, SR_USAGE, "--yrange %s: a logarithmic axis begins above 0", c->yrange);
    if (status == SR_OK && c->steps[0]) status = read_range("steps", c->steps, end, why);
    if (status == SR_OK) status = read_size(c, t, why);
    if (status != SR_OK) return status;
    snprintf(t->steps, sizeof t->steps, "%s", c->steps[0] ? c->steps : "all");
    for (int i = 0; i < t->tables; i++)
        if (in_buckets(&t->table[i])) t->table[i].smooth = (int)c->smooth;
    return SR_OK;
}

/* -- telling gnuplot ------------------------------------------------------------------------- */

static void write_range(FILE *out, const char *axis, const char *option, const char *text) {
    double end[2] = {0, 1};
    sr_failure ignored = {0}; /* it was read before */
    if (text[0]) read_range(option, text, end, &ignored);
    fprintf(out, "%s_given = %d\n%s_from = %.17g\n%s_to = %.17g\n", axis, text[0] != 0, axis,
            end[0], axis, end[1]);
}

/* Parts are separated by "; ". */
static void add_note(char *note, size_t size, const char *what, const char *text) {
    const size_t used = strlen(note);
    snprintf(note + used, size - used, "%s%s%s", used ? "; " : "", what, text);
}

void plot_controls_write(FILE *out, const plot_template *t, const plot_controls *c) {
    char note[512] = "", number[32];
    if (c->samples[0]) add_note(note, sizeof note, "sample runs of statrec: ", c->samples);
    if (c->steps[0]) add_note(note, sizeof note, "steps ", c->steps);
    snprintf(number, sizeof number, "%lld buckets", (long long)c->smooth);
    if (c->smooth) add_note(note, sizeof note, "running medians over ", number);
    plot_assign(out, c->title, "figure_title");
    plot_assign(out, note, "figure_note");
    fprintf(out, "figure_fixed = %d\n", c->size[0] && venue_width(c->size) <= 0);
    fprintf(out, "figure_scale = '%s'\n", c->log ? "log" : c->linear ? "linear" : "");
    plot_assign(out, t->steps, "steps");
    write_range(out, "x", "xrange", c->xrange);
    write_range(out, "y", "yrange", c->yrange);
}
