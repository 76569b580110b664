/* drawing.h -- the content of a statplot figure: panels, marks, texts and boxes of its SVG. */
#ifndef TESTS_PLOT_DRAWING_H
#define TESTS_PLOT_DRAWING_H

#include <stdbool.h>

#include "svg_axes.h"
#include "testing/programs.h"

typedef enum { MARK_LINE, MARK_POINT, MARK_AREA } mark_kind;

/* A vertex of a line, a point's position, a corner of a filled area; pixels, y downwards. */
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

/* A heat map's image: pixels of the drawing, and the colours of its fields, rows from the top. */
typedef struct drawing_image {
    double x, y, width, height;
    int columns, rows;
    unsigned *colour; /* [rows, columns] 0xRRGGBB */
} drawing_image;

typedef struct drawing {
    char command[512];
    svg_panel panel[AXES_PANELS]; /* in the order of the plot commands */
    drawing_mark *mark;           /* marks of all curves */
    drawing_mark *box;            /* corners of filled rectangles outside curves, four for each */
    drawing_text *text;
    drawing_image *image;
    int panels, marks, boxes, texts, images;
} drawing;

/* Draws the command, statplot FIGURE RUN..., without -o, in check_temporary(). Returns lines for
 * svg_read_panels, and the SVG in r->out. The test fails if statplot does. */
const char *drawing_svg(const char *command, program_result *r);

/* Draws a command's figure; the result is valid until the next call. */
const drawing *drawing_make(const char *command);

/* Line style `look` (from 1) selects its colour in style.gp; 0: any colour. */
enum { ANY_LOOK = 0 };

/* Fails unless panel `panel` (from 1) has a mark of this kind at x, y, in axis units. */
void check_mark(const drawing *d, int panel, mark_kind kind, int look, double x, double y);
/* Fails unless a panel's axes have these labels; "": no label. A blank joins lines. */
void check_axes(const drawing *d, int panel, const char *x_label, const char *y_label);
/* Fails unless this title is above the middle of a panel. */
void check_title(const drawing *d, int panel, const char *title);
/* Fails unless the heat map's field at x, y has the value's colour on the panel's colour scale. */
void check_heat(const drawing *d, int panel, double x, double y, double value);
/* Fails unless a grey box covers x from 0 to `every`, the burn-in common to all runs. A lighter one
 * goes from there to `some`, the burn-in of some runs. 0: fails if such a box exists. */
void check_burn_in(const drawing *d, int panel, double every, double some);
/* Fails unless the text is somewhere in the drawing. */
void check_says(const drawing *d, const char *text);

#endif
