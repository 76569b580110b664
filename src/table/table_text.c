/* Text of any origin (labels, names in run files) in the formats of result tables. */
#include <stdio.h>

#include "statnet/table.h"

/* What stands for a character; NULL: itself. */
static const char *latex_of(char c) {
    switch (c) {
    case '\\':
        return "\\textbackslash{}";
    case '{':
        return "\\{";
    case '}':
        return "\\}";
    case '$':
        return "\\$";
    case '&':
        return "\\&";
    case '#':
        return "\\#";
    case '%':
        return "\\%";
    case '_':
        return "\\_";
    case '^':
        return "\\textasciicircum{}";
    case '~':
        return "\\textasciitilde{}";
    case '<':
        return "\\textless{}";
    case '>':
        return "\\textgreater{}";
    case '|':
        return "\\textbar{}";
    case '\'':
        return "\\textquotesingle{}";
    case '`':
        return "\\textasciigrave{}";
    default:
        return NULL;
    }
}

static bool is_control(char c) {
    return (unsigned char)c < ' ' || c == 0x7f;
}

void table_latex(FILE *out, const char *text) {
    for (const char *c = text; *c; c++) {
        const char *instead = is_control(*c) ? " " : latex_of(*c);
        if (instead)
            fputs(instead, out);
        else
            fputc(*c, out);
    }
}

void table_markdown(FILE *out, const char *text) {
    static const char marks[] = "\\`*_{}[]()#|!~$";
    for (const char *c = text; *c; c++) {
        const char *instead = is_control(*c) ? " "
                              : *c == '<'    ? "&lt;"
                              : *c == '>'    ? "&gt;"
                              : *c == '&'    ? "&amp;"
                                             : NULL;
        for (const char *m = marks; !instead && *m; m++)
            if (*m == *c) fputc('\\', out);
        if (instead)
            fputs(instead, out);
        else
            fputc(*c, out);
    }
}
