/* drawing.c -- reads the parts of a figure's SVG that gnuplot writes. */
#include "drawing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"

/* -- drawing --------------------------------------------------------------------------------- */

/* Draws the kept directory again. Prints each panel's box and axes before the next panel, and at
 * the end. */
static const char tell[] =
    "d=$(sed -n 's/^statplot: kept //p' kept) && cd \"$d\" && cat >tell.gp <<'END'\n"
    "TELL = 'if (exists(\"GPVAL_TERM_XMIN\")) { set print \"axes.txt\" append; print "
    "GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, GPVAL_TERM_YSIZE, "
    "GPVAL_TERM_SCALE, GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX, GPVAL_CB_MIN, "
    "GPVAL_CB_MAX; set print }; '\n"
    "END\n"
    "sed -i '/^panel(c, cs, r, rs) = /s/= /= TELL./; /^LEGEND_DRAW = /s/= /= TELL./' style.gp &&\n"
    "sed -i \"s/^load 'style.gp'/load 'tell.gp'\\\\n&/; s/^unset output/eval TELL\\\\n&/\" "
    "figure.gp &&\n"
    "gnuplot -d figure.gp >&2 && cat axes.txt && echo SVG && cat figure.svg && cd .. && rm -r "
    "\"$d\"";

const char *drawing_svg(const char *command, program_result *r) {
    *r =
        program_run("%s -o axes.svg --keep 2>kept || { cat kept >&2; exit 1; }\n%s", command, tell);
    char *svg = strstr(r->out, "SVG\n");
    if (r->status || !svg) fail_msg("%s: exit %d: %s", command, r->status, r->err);
    *svg = 0;
    return svg + 4;
}

/* -- reading --------------------------------------------------------------------------------- */

static void *grown(void *list, int count, size_t size) {
    void *longer = realloc(list, (size_t)(count + 1) * size);
    assert_non_null(longer);
    return longer;
}

/* Returns the colour "rgb( 13, 8, 135)" after NAME='; 0 without one. */
static unsigned colour_of(const char *at, const char *end, const char *name) {
    unsigned red, green, blue;
    const char *found = strstr(at, name);
    if (!found || found > end) return 0;
    found = strstr(found, "rgb(");
    if (!found || found > end || sscanf(found, "rgb(%u,%u,%u)", &red, &green, &blue) != 3) return 0;
    return red << 16 | green << 8 | blue;
}

static void add_mark(drawing *d, bool curve, drawing_mark m) {
    drawing_mark **list = curve ? &d->mark : &d->box;
    int *count = curve ? &d->marks : &d->boxes;
    *list = grown(*list, *count, sizeof **list);
    (*list)[(*count)++] = m;
}

/* Pairs of numbers up to the closing quote. */
static void read_pairs(drawing *d, bool curve, const char *at, drawing_mark m) {
    for (char *end; *at && *at != '\''; at = end > at ? end : at + 1) {
        m.x = strtod(at, &end);
        if (end == at || *end != ',') continue;
        m.y = strtod(end + 1, &end);
        add_mark(d, curve, m);
    }
}

/* A gnuplot symbol's unit is half its height: scale() does not move it. */
static void read_use(drawing *d, const char *at, const char *end) {
    drawing_mark m = {.colour = colour_of(at, end, "color="), .kind = MARK_POINT};
    const char *place = strstr(at, "translate(");
    if (place && place < end && sscanf(place, "translate(%lf,%lf)", &m.x, &m.y) == 2)
        add_mark(d, true, m);
}

static void read_text(drawing *d, const char *at) {
    drawing_text t = {0};
    const char *group = at, *end = strstr(at, "</text>");
    double turn = 0;
    size_t used = 0;
    while (strncmp(group, "<g ", 3) != 0) group--;
    group = strstr(group, "translate(");
    if (sscanf(group, "translate(%lf,%lf) rotate(%lf)", &t.x, &t.y, &turn) < 2) return;
    t.turned = turn != 0;
    bool inside = false;
    for (; at < end && used + 1 < sizeof t.text; at++) {
        if (*at == '<' || *at == '>')
            inside = *at == '>';
        else if (inside && (*at != ' ' || used))
            t.text[used++] = *at;
    }
    while (used && t.text[used - 1] == ' ') t.text[--used] = 0;
    d->text = grown(d->text, d->texts, sizeof *d->text);
    d->text[d->texts++] = t;
}

/* gnuplot reads the PNG that it wrote; y increases from the bottom. */
static void read_image(drawing *d, const char *at) {
    static const char before[] = "data:image/png;base64,";
    const char *place = strstr(at, "x='"), *data = strstr(at, before);
    drawing_image m = {0};
    if (!place || !data ||
        sscanf(place, "x='%lf' y='%lf' width='%lf' height='%lf'", &m.x, &m.y, &m.width,
               &m.height) != 4)
        fail_msg("cannot read an image: %.120s", at);
    FILE *out = fopen(program_file("image.b64"), "w");
    assert_non_null(out);
    data += sizeof before - 1;
    fwrite(data, 1, strcspn(data, "'"), out);
    assert_int_equal(fclose(out), 0);
    program_result r = program_run(
        "base64 -d image.b64 >image.png && gnuplot -e \"set table 'image.txt'; plot 'image.png' "
        "binary filetype=png using 1:2:3 with rgbimage\" && awk '$7 == \"i\" { print $1, $2, $3, "
        "$4, "
        "$5 }' image.txt");
    if (r.status) fail_msg("cannot decode an image: %s", r.err);
    for (int pass = 0; pass < 2; pass++) {
        double x, y;
        unsigned red, green, blue;
        int used;
        for (const char *line = r.out;
             sscanf(line, "%lf %lf %u %u %u%n", &x, &y, &red, &green, &blue, &used) == 5;
             line += used) {
            if (!pass && x >= m.columns) m.columns = (int)x + 1;
            if (!pass && y >= m.rows) m.rows = (int)y + 1;
            if (pass)
                m.colour[(m.rows - 1 - (int)y) * m.columns + (int)x] =
                    red << 16 | green << 8 | blue;
        }
        if (!pass) m.colour = calloc((size_t)(m.rows * m.columns) + 1, sizeof *m.colour);
        assert_non_null(m.colour);
    }
    program_free(&r);
    d->image = grown(d->image, d->images, sizeof *d->image);
    d->image[d->images++] = m;
}

static void read_svg(drawing *d, const char *svg) {
    bool curve = false; /* below <g id="gnuplot_plot_N"> */
    for (const char *at = svg; (at = strchr(at, '<')); at++) {
        const char *end = strchr(at, '>');
        if (strncmp(at, "<g id=\"gnuplot_plot_", 20) == 0) curve = true;
        if (curve && strncmp(at, "</g>\n\t</g>", 10) == 0) curve = false;
        if (curve && strncmp(at, "<path ", 6) == 0)
            read_pairs(d, true, strstr(at, "d='") + 3,
                       (drawing_mark){.colour = colour_of(at, end, "stroke="), .kind = MARK_LINE});
        if (strncmp(at, "<polygon ", 9) == 0)
            read_pairs(d, curve, strstr(at, "points = '") + 10,
                       (drawing_mark){.colour = colour_of(at, end, "fill ="), .kind = MARK_AREA});
        if (curve && strncmp(at, "<use ", 5) == 0) read_use(d, at, end);
        if (strncmp(at, "<text", 5) == 0) read_text(d, at);
        if (strncmp(at, "<image ", 7) == 0) read_image(d, at);
    }
}

const drawing *drawing_make(const char *command) {
    static drawing d;
    static svg_figure figure;
    program_result r;
    for (int i = 0; i < d.images; i++) free(d.image[i].colour);
    free(d.mark), free(d.box), free(d.text), free(d.image);
    d = (drawing){.panels = 0};
    snprintf(d.command, sizeof d.command, "%s", command);
    figure.panels = 0;
    const char *svg = drawing_svg(command, &r);
    figure.labels = 0;
    svg_read_panels(&figure, r.out);
    svg_read_labels(&figure, svg);
    svg_find_scales(&figure);
    d.panels = figure.panels;
    memcpy(d.panel, figure.panel, sizeof d.panel);
    read_svg(&d, svg);
    program_free(&r);
    return &d;
}

/* -- checks ---------------------------------------------------------------------------------- */

static const svg_panel *panel_of(const drawing *d, int panel) {
    if (panel < 1 || panel > d->panels)
        fail_msg("%s: no panel %d of %d", d->command, panel, d->panels);
    return &d->panel[panel - 1];
}

static double fraction(const svg_panel *p, svg_axis axis, double v) {
    const double low = p->low[axis], high = p->high[axis];
    return p->logarithmic[axis] ? log(v / low) / log(high / low) : (v - low) / (high - low);
}

static double pixel_x(const svg_panel *p, double x) {
    return p->left + fraction(p, AXIS_X, x) * (p->right - p->left);
}

static double pixel_y(const svg_panel *p, double y) {
    return p->bottom + fraction(p, AXIS_Y, y) * (p->top - p->bottom);
}

static unsigned look_colour(int look) {
    static const unsigned colour[] = {0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7,
                                      0x56B4E9, 0xE69F00, 0x000000, 0x999999};
    return colour[(look - 1) % 8];
}

void check_mark(const drawing *d, int panel, mark_kind kind, int look, double x, double y) {
    const svg_panel *p = panel_of(d, panel);
    const double at_x = pixel_x(p, x), at_y = pixel_y(p, y);
    double nearest = INFINITY, found[2] = {NAN, NAN};
    if (!(at_x > p->left - 1 && at_x < p->right + 1 && at_y > p->top - 1 && at_y < p->bottom + 1))
        fail_msg("%s: %g, %g is outside of panel %d", d->command, x, y, panel);
    for (int i = 0; i < d->marks; i++) {
        const drawing_mark *m = &d->mark[i];
        const double distance = hypot(m->x - at_x, m->y - at_y);
        if (m->kind != kind || (look != ANY_LOOK && m->colour != look_colour(look))) continue;
        if (distance < nearest) nearest = distance, found[0] = m->x, found[1] = m->y;
    }
    if (!(nearest < 0.06))
        fail_msg("%s: panel %d has no mark %d of look %d at %g, %g (pixel %.2f, %.2f); the nearest "
                 "is at pixel %.2f, %.2f",
                 d->command, panel, kind, look, x, y, at_x, at_y, found[0], found[1]);
}

/* The text is beside the middle of the axis. */
static bool is_label(const svg_panel *p, const drawing_text *t, svg_axis axis) {
    if (t->turned != (axis == AXIS_Y)) return false;
    if (axis == AXIS_X)
        return fabs(t->x - 0.5 * (p->left + p->right)) < 1 && t->y > p->bottom + 17 &&
               t->y < p->bottom + 40;
    return fabs(t->y - 0.5 * (p->top + p->bottom)) < 1 && t->x < p->left && t->x > p->left - 88;
}

static void check_label(const drawing *d, int panel, svg_axis axis, const char *want) {
    char label[512] = "";
    for (int i = 0; i < d->texts; i++) {
        if (!is_label(panel_of(d, panel), &d->text[i], axis)) continue;
        const size_t used = strlen(label);
        snprintf(label + used, sizeof label - used, "%s%s", used ? " " : "", d->text[i].text);
    }
    if (strcmp(label, want) != 0)
        fail_msg("%s: panel %d: the label of %c is '%s' instead of '%s'", d->command, panel,
                 axis == AXIS_X ? 'x' : 'y', label, want);
}

void check_axes(const drawing *d, int panel, const char *x_label, const char *y_label) {
    check_label(d, panel, AXIS_X, x_label);
    check_label(d, panel, AXIS_Y, y_label);
}

void check_title(const drawing *d, int panel, const char *title) {
    const svg_panel *p = panel_of(d, panel);
    for (int i = 0; i < d->texts; i++) {
        const drawing_text *t = &d->text[i];
        if (fabs(t->x - 0.5 * (p->left + p->right)) < 1 && t->y < p->top && t->y > p->top - 24 &&
            strcmp(t->text, title) == 0)
            return;
    }
    fail_msg("%s: no title '%s' above panel %d", d->command, title, panel);
}

/* Viridis, as in style.gp. */
static unsigned heat_colour(double where) {
    static const unsigned colour[] = {0x440154, 0x472D7B, 0x3B528B, 0x2C728E, 0x21918C,
                                      0x28AE80, 0x5EC962, 0xADDC30, 0xFDE725};
    const int i = where >= 1 ? 7 : (int)(8 * where);
    unsigned mixed = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        const double a = colour[i] >> shift & 255, b = colour[i + 1] >> shift & 255;
        mixed |= (unsigned)lround(a + (b - a) * (8 * where - i)) << shift;
    }
    return mixed;
}

static bool near_colour(unsigned a, unsigned b) {
    for (int shift = 0; shift <= 16; shift += 8)
        if (abs((int)(a >> shift & 255) - (int)(b >> shift & 255)) > 2) return false;
    return true;
}

void check_heat(const drawing *d, int panel, double x, double y, double value) {
    const svg_panel *p = panel_of(d, panel);
    const double at_x = pixel_x(p, x), at_y = pixel_y(p, y);
    const unsigned want = heat_colour(fraction(p, AXIS_COLOUR, value));
    for (int i = 0; i + 3 < d->marks; i++) {
        const drawing_mark *a = &d->mark[i], *b = &d->mark[i + 2];
        if (a->kind != MARK_AREA || b->kind != MARK_AREA || a->colour != b->colour) continue;
        /* corners of one rectangle, not of two adjacent ones */
        if (a[0].y != a[1].y || a[1].x != a[2].x || a[2].y != a[3].y || a[3].x != a[0].x) continue;
        if (at_x < fmin(a->x, b->x) || at_x > fmax(a->x, b->x) + 0.06 || at_y < fmin(a->y, b->y) ||
            at_y > fmax(a->y, b->y))
            continue;
        if (near_colour(a->colour, want)) return;
        fail_msg("%s: panel %d: %06X instead of %06X for %g at %g, %g", d->command, panel,
                 a->colour, want, value, x, y);
    }
    for (int i = 0; i < d->images; i++) {
        const drawing_image *m = &d->image[i];
        const int column = (int)floor((at_x - m->x) / m->width * m->columns),
                  row = (int)floor((at_y - m->y) / m->height * m->rows);
        /* the last field extends beyond the panel */
        const int last = column == m->columns && at_x < m->x + m->width + 1;
        if (column < 0 || column > m->columns - 1 + last || row < 0 || row >= m->rows) continue;
        const unsigned colour = m->colour[row * m->columns + column - last];
        if (near_colour(colour, want)) return;
        fail_msg("%s: panel %d: %06X instead of %06X for %g at %g, %g", d->command, panel, colour,
                 want, value, x, y);
    }
    fail_msg("%s: panel %d: no field around %g, %g", d->command, panel, x, y);
}

/* A box of this colour covers the panel from x `from` to `end`, if end is larger. */
static void check_box(const drawing *d, int panel, unsigned colour, double from, double end) {
    const svg_panel *p = panel_of(d, panel);
    int boxes = 0;
    for (int i = 0; i + 3 < d->boxes; i += 4) {
        const drawing_mark *b = &d->box[i];
        if (b->colour != colour || b->x < p->left - 1 || b->x > p->right || b->y < p->top - 1 ||
            b->y > p->bottom + 1)
            continue;
        boxes++;
        assert_float_equal(b[0].x, pixel_x(p, from), 0.06);
        assert_float_equal(b[1].x, pixel_x(p, end), 0.06);
        assert_float_equal(b[0].y, p->bottom, 0.06);
        assert_float_equal(b[2].y, p->top, 0.06);
    }
    if (boxes != (end > from))
        fail_msg("%s: panel %d has %d boxes of %06X instead of %d", d->command, panel, boxes,
                 colour, end > from);
}

void check_burn_in(const drawing *d, int panel, double every, double some) {
    check_box(d, panel, 0xECECEC, 0, every);
    check_box(d, panel, 0xF6F6F6, every, some);
}

void check_says(const drawing *d, const char *text) {
    for (int i = 0; i < d->texts; i++)
        if (strcmp(d->text[i].text, text) == 0) return;
    fail_msg("%s does not say '%s'", d->command, text);
}
