/* Labels of ticks against the values at their positions.
 *
 * gnuplot draws a tick's mark and label in one group; the mark is at the end of a path. An axis is
 * linear or logarithmic between the values at its ends. Each position thus has one value of either
 * kind. All labels of an axis must agree with one kind, to half a pixel.
 */
#include "svg_axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- the figure ------------------------------------------------------------------------------ */

/* Text of <tspan>s up to </text>; a superscript gets a ^ before it. */
static void read_text(const char *at, const char *end, char text[64]) {
    size_t used = 0;
    while (at && at < end) {
        const char *tag = strchr(at, '<'), *close = tag ? strchr(tag, '>') : NULL;
        for (; at < tag && used + 2 < 64; at++)
            if (*at != ' ') text[used++] = *at;
        const char *raised = close ? strstr(tag, "dy=\"-") : NULL;
        if (raised && raised < close && close < end && used + 2 < 64) text[used++] = '^';
        at = close ? close + 1 : NULL;
    }
    text[used] = 0;
}

/* "0.5", "10^-5", "2·10^-5", "1×10^-5" */
static bool read_number(const char *text, double *value) {
    static const char *const times[] = {"·", "×", "x"};
    char *end;
    *value = strtod(text, &end);
    if (end == text) return false;
    if (*end == '^') {
        const double power = strtod(end + 1, &end);
        *value = pow(*value, power);
        return !*end;
    }
    for (int i = 0; i < 3; i++) {
        const size_t length = strlen(times[i]);
        double ten;
        if (strncmp(end, times[i], length) != 0) continue;
        if (!read_number(end + length, &ten)) return false;
        *value *= ten;
        return true;
    }
    return !*end;
}

/* The last "M x,y L x,y" of a path. */
static bool read_mark(const char *path, const char *end, double mark[4]) {
    for (const char *at = end; at > path; at--)
        if (*at == 'M')
            return sscanf(at, "M%lf,%lf L%lf,%lf", mark, mark + 1, mark + 2, mark + 3) == 4;
    return false;
}

/* A mark downwards belongs to x, to the left to y, to the right to colours. */
static bool axis_of(const double mark[4], svg_axis *axis) {
    const double across = mark[2] - mark[0], down = mark[3] - mark[1];
    if (fabs(across) + fabs(down) > 6) return false;
    if (across == 0 && down > 0) return *axis = AXIS_X, true;
    if (down != 0 || across == 0) return false;
    return *axis = across < 0 ? AXIS_Y : AXIS_COLOUR, true;
}

/* at: position of the text. Names (of rows, of sites) have no marks. */
static bool find_tic(svg_label *l, const char *path, const char *path_end, const double at[2],
                     bool turned) {
    double mark[4];
    if (path && read_mark(path, path_end, mark) && axis_of(mark, &l->axis) &&
        fabs(l->axis == AXIS_X ? at[0] - mark[0] : at[1] - mark[1]) < 8) {
        l->x = mark[0], l->y = mark[1];
        return l->marked = true;
    }
    l->axis = turned ? AXIS_X : AXIS_Y;
    l->x = at[0], l->y = at[1];
    return true;
}

static void add_label(svg_figure *f, const char *path, const char *path_end, const char *text) {
    double at[2], turn = 0;
    const char *place = text;
    svg_label l = {0};
    while (strncmp(place, "<g ", 3) != 0) place--;
    const bool ends = strstr(place, "\"end\"") && strstr(place, "\"end\"") < text;
    place = strstr(place, "translate(");
    if (sscanf(place, "translate(%lf,%lf) rotate(%lf)", at, at + 1, &turn) < 2) return;
    if (!find_tic(&l, path, path_end, at, turn != 0) || (!l.marked && !ends)) return;
    read_text(strchr(text, '>') + 1, strstr(text, "</text>"), l.text);
    l.number = l.marked && read_number(l.text, &l.value);
    if (l.text[0] && f->labels < AXES_LABELS) f->label[f->labels++] = l;
}

void svg_read_labels(svg_figure *f, const char *svg) {
    const char *path = NULL, *path_end = NULL;
    for (const char *at = svg; (at = strchr(at, '<')); at++) {
        if (at > svg && at[-1] == '\n' && strncmp(at, "<g ", 3) == 0) path = NULL;
        if (strncmp(at, "<path ", 6) == 0) path = at, path_end = strstr(at, "/>");
        if (strncmp(at, "<text", 5) == 0) add_label(f, path, path_end, at);
    }
}

void svg_read_panels(svg_figure *f, const char *lines) {
    for (const char *at = lines; *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "") {
        svg_panel p;
        double box[4], height, scale;
        if (sscanf(at, "%lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf", box, box + 1, box + 2,
                   box + 3, &height, &scale, p.low, p.high, p.low + 1, p.high + 1, p.low + 2,
                   p.high + 2) != 12 ||
            box[0] <= 0 || f->panels == AXES_PANELS) /* from 0: the legend */
            continue;
        memset(p.logarithmic, 0, sizeof p.logarithmic);
        p.left = box[0], p.right = box[1];
        p.top = height / scale - box[3], p.bottom = height / scale - box[2];
        bool again = false;
        for (int i = 0; i < f->panels; i++)
            again = again || (f->panel[i].left == p.left && f->panel[i].top == p.top);
        if (!again) f->panel[f->panels++] = p;
    }
}

/* -- comparison of labels with positions ----------------------------------------------------- */

static bool beside(const svg_panel *p, const svg_label *l, svg_axis axis) {
    const bool inside = axis == AXIS_X ? l->x > p->left - 1 && l->x < p->right + 1
                                       : l->y > p->top - 1 && l->y < p->bottom + 1;
    const double near = l->marked ? 1 : 20;
    if (l->axis != axis || !inside) return false;
    if (axis == AXIS_X) return fabs(l->y - p->bottom) < near;
    if (axis == AXIS_Y) return fabs(l->x - p->left) < near;
    return l->x > p->right && l->x < p->right + 60;
}

/* Returns the pixels between a tick and the position of its label's number. */
static double shift(const svg_panel *p, const svg_label *l, bool logarithmic) {
    const double low = p->low[l->axis], high = p->high[l->axis];
    const double share =
        logarithmic ? log(l->value / low) / log(high / low) : (l->value - low) / (high - low);
    if (l->axis == AXIS_X) return fabs(p->left + share * (p->right - p->left) - l->x);
    return fabs(p->bottom + share * (p->top - p->bottom) - l->y);
}

/* Up to the last digit that is not 0. */
static int digits_of(const char *text) {
    int digits = 0, most = 0;
    for (const char *at = text + strspn(text, "-0."); strspn(at, "0123456789."); at++) {
        digits += *at != '.';
        if (*at > '0') most = digits;
    }
    return most;
}

/* Letters of 8 points are six pixels wide and ten high, or a little less. */
static bool overlap(const svg_label *a, const svg_label *b) {
    if (a->axis != AXIS_X) return fabs(a->y - b->y) < 7;
    return fabs(a->x - b->x) < 2.75 * (double)(strlen(a->text) + strlen(b->text));
}

typedef struct axis_check {
    int labels, numbers;
    const svg_label *wrong[2]; /* as linear, as logarithmic axis */
    const svg_label *twice, *longest, *upon;
} axis_check;

static axis_check check_axis(const svg_figure *f, const svg_panel *p, svg_axis axis) {
    axis_check c = {0};
    for (int i = 0; i < f->labels; i++) {
        const svg_label *l = &f->label[i];
        if (!beside(p, l, axis)) continue;
        c.labels++;
        if (!l->number) continue;
        c.numbers++;
        for (int kind = 0; kind < 2; kind++)
            if (!(shift(p, l, kind) < 0.5)) c.wrong[kind] = l;
        if (digits_of(l->text) > 4) c.longest = l;
        for (int k = 0; k < i; k++)
            if (beside(p, &f->label[k], axis)) {
                if (strcmp(f->label[k].text, l->text) == 0) c.twice = l;
                if (f->label[k].number && overlap(&f->label[k], l)) c.upon = l;
            }
    }
    return c;
}

/* Returns the panel with the numbers: aligned panels with equal ends may share them; NULL: none. */
static const svg_panel *labelled(const svg_figure *f, const svg_panel *p, svg_axis axis) {
    for (int i = 0; i < f->panels; i++) {
        const svg_panel *other = &f->panel[i];
        const bool lined_up =
            axis == AXIS_X
                ? fabs(other->left - p->left) < 0.1 && fabs(other->right - p->right) < 0.1
                : fabs(other->top - p->top) < 0.1 && fabs(other->bottom - p->bottom) < 0.1;
        if (lined_up && other->low[axis] == p->low[axis] && other->high[axis] == p->high[axis] &&
            check_axis(f, other, axis).labels > 1)
            return other;
    }
    return NULL;
}

void svg_find_scales(svg_figure *f) {
    for (int i = 0; i < f->panels; i++)
        for (int axis = 0; axis < AXES; axis++) {
            const svg_panel *p = labelled(f, &f->panel[i], (svg_axis)axis);
            double most[2] = {0, 0}; /* as a linear, as a logarithmic axis */
            for (int k = 0; p && k < f->labels; k++)
                for (int kind = 0; kind < 2; kind++) {
                    const svg_label *l = &f->label[k];
                    if (!l->number || !beside(p, l, (svg_axis)axis)) continue;
                    const double here = shift(p, l, kind);
                    if (!(here <= most[kind])) most[kind] = isnan(here) ? INFINITY : here;
                }
            f->panel[i].logarithmic[axis] = most[1] < most[0];
        }
}

static const char *fault_of(const svg_figure *f, const svg_panel *p, svg_axis axis) {
    static const char *const name[AXES] = {"x", "y", "colour"};
    static char text[256];
    const axis_check c = check_axis(f, p, axis);
    const char *what = NULL;
    const svg_label *at = NULL;
    if (c.wrong[0] && c.wrong[1]) what = "is not what its place means", at = c.wrong[0];
    if (c.twice) what = "stands twice", at = c.twice;
    if (c.upon) what = "lies upon another", at = c.upon;
    if (c.longest) what = "has too many digits", at = c.longest;
    if (c.labels == 1 && c.numbers) what = "is the only number";
    if (c.labels == 0 && axis != AXIS_COLOUR && !labelled(f, p, axis)) what = "has no label";
    if (!what) return "";
    snprintf(text, sizeof text, "%s axis from %g to %g of the panel at %.0f,%.0f: '%s' %s",
             name[axis], p->low[axis], p->high[axis], p->left, p->top, at ? at->text : "", what);
    return text;
}

const char *svg_fault(const svg_figure *f) {
    for (int i = 0; i < f->panels; i++)
        for (int axis = 0; axis < AXES; axis++) {
            const char *fault = fault_of(f, &f->panel[i], (svg_axis)axis);
            if (fault[0]) return fault;
        }
    return "";
}
