/* Text of any origin (labels, names in run files) in the formats of result tables. */
#include <stdio.h>

#include "base/utf8.h"
#include "table/table.h"

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

void table_latex(FILE *out, const char *text) {
    for (const char *c = text; *c; c++) {
        const int bytes = utf8_shown(c);
        const char *instead = !bytes ? " " : latex_of(*c);
        if (instead)
            fputs(instead, out);
        else
            fwrite(c, 1, (size_t)bytes, out);
        if (bytes) c += bytes - 1;
    }
}

void table_markdown(FILE *out, const char *text) {
    static const char marks[] = "\\`*_{}[]()#|!~$";
    for (const char *c = text; *c; c++) {
        const int bytes = utf8_shown(c);
        const char *instead = !bytes      ? " "
                              : *c == '<' ? "&lt;"
                              : *c == '>' ? "&gt;"
                              : *c == '&' ? "&amp;"
                                          : NULL;
        for (const char *m = marks; !instead && *m; m++)
            if (*m == *c) fputc('\\', out);
        if (instead)
            fputs(instead, out);
        else
            fwrite(c, 1, (size_t)bytes, out);
        if (bytes) c += bytes - 1;
    }
}
