/* drawing.h -- what a figure of statplot shows: panels, marks, texts and boxes of its SVG. */
#ifndef TESTS_PLOT_DRAWING_H
#define TESTS_PLOT_DRAWING_H

#include <stdbool.h>

#include "svg_axes.h"
#include "testing/programs.h"

typedef enum { MARK_LINE, MARK_POINT, MARK_AREA } mark_kind;

/* A vertex of a line, the place of a point, a corner of a filled area; pixels, y downwards. */
typedef struct drawing_mark {
    double x, y;
    unsigned colour; /* 0xRRGGBB */
    mark_kind kind;
} drawing_mark;

typedef struct drawing_text {
    double x, y;
    bool turned; /* reads upwards */
    char text[160];
} drawing_text;

/* An image of a heat map: pixels of the drawing, and the colours of its fields, rows from the top. */
typedef struct drawing_image {
    double x, y, width, height;
    int columns, rows;
    unsigned *colour; /* [rows, columns] 0xRRGGBB */
} drawing_image;

typedef struct drawing {
    char command[512];
    svg_panel panel[AXES_PANELS]; /* in the order of the plot commands */
    drawing_mark *mark;           /* of all curves */
    drawing_mark *box;            /* corners of filled rectangles outside curves, four for each */
    drawing_text *text;
    drawing_image *image;
    int panels, marks, boxes, texts, images;
} drawing;

/* Draws the command, statplot FIGURE RUN..., without -o, in check_temporary() and splits what comes
 * out: lines for svg_read_panels, and the SVG (in r->out). The test fails where statplot does. */
const char *drawing_svg(const char *command, program_result *r);

/* The drawing of a command, which stays until the next one. */
const drawing *drawing_make(const char *command);

/* The colour of line style `look` (from 1), as in style.gp; 0 stands for any colour. */
enum { ANY_LOOK = 0 };

/* Fails unless a mark of this kind is inside panel `panel` (from 1) at x, y in the units of its
   axes. */
void check_mark(const drawing *d, int panel, mark_kind kind, int look, double x, double y);
/* Fails unless the labels beside the axes of a panel are these; "" for none. Lines are joined by a
   blank. */
void check_axes(const drawing *d, int panel, const char *x_label, const char *y_label);
/* Fails unless this text is above the middle of a panel. */
void check_title(const drawing *d, int panel, const char *title);
/* Fails unless the field of a heat map around x, y has the colour of the value, on the panel's
   scale of colours. */
void check_heat(const drawing *d, int panel, double x, double y, double value);
/* Fails unless a grey box covers the panel from x 0 to `every`, the burn-in of every run, and a light
 * one from there to `some`, that of some; 0: unless there is none. */
void check_burn_in(const drawing *d, int panel, double every, double some);
/* Fails unless the text is somewhere in the drawing. */
void check_says(const drawing *d, const char *text);

#endif
