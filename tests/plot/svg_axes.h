/* svg_axes.h -- the numbers on the axes of an SVG figure drawn by gnuplot. */
#ifndef TESTS_SVG_AXES_H
#define TESTS_SVG_AXES_H

#include <stdbool.h>

enum { AXES_PANELS = 200, AXES_LABELS = 4000 };

typedef enum { AXIS_X, AXIS_Y, AXIS_COLOUR, AXES } svg_axis;

/* A tick's label: the tick's position (pixels, y downwards), and the label's number, if it is
 * one. */
typedef struct svg_label {
    double x, y; /* the tick's position on the axis */
    svg_axis axis;
    char text[64];
    bool marked, number; /* marked: has a tick; a name in a list has none */
    double value;
} svg_label;

/* gnuplot's panel: pixels of its box, values at its ends. */
typedef struct svg_panel {
    double left, right, top, bottom;
    double low[AXES], high[AXES]; /* colours: low > high if the panel has none */
    bool logarithmic[AXES];       /* set by svg_find_scales */
} svg_panel;

typedef struct svg_figure {
    svg_label label[AXES_LABELS];
    svg_panel panel[AXES_PANELS];
    int labels, panels;
} svg_figure;

/* Reads the labels of the ticks from an SVG. */
void svg_read_labels(svg_figure *f, const char *svg);
/* Reads lines of: GPVAL_TERM_XMIN XMAX YMIN YMAX YSIZE SCALE, GPVAL_X_MIN MAX, Y, CB. */
void svg_read_panels(svg_figure *f, const char *lines);
/* Determines the logarithmic axes from their tick labels. */
void svg_find_scales(svg_figure *f);
/* Returns a fault of the axes, "" for none. Faults: a label that differs from the value at its
 * position; fewer than two numbers on an axis; a repeated number; more than four digits. */
const char *svg_fault(const svg_figure *f);

#endif
