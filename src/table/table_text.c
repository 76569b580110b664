/* Text of any origin (labels, names in run files) in the formats of result tables. */
#include <stdio.h>

#include "base/utf8.h"
#include "table/table.h"

/* The LaTeX of a character; NULL: itself. */
static const char *latex_of(char c) {
    static const struct {
        char c;
        const char *text;
    } special[] = {
        {'\\', "\\textbackslash{}"},
        {'{', "\\{"},
        {'}', "\\}"},
        {'$', "\\$"},
        {'&', "\\&"},
        {'#', "\\#"},
        {'%', "\\%"},
        {'_', "\\_"},
        {'^', "\\textasciicircum{}"},
        {'~', "\\textasciitilde{}"},
        {'<', "\\textless{}"},
        {'>', "\\textgreater{}"},
        {'|', "\\textbar{}"},
        {'\'', "\\textquotesingle{}"},
        {'`', "\\textasciigrave{}"},
    };
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (special[i].c == c) return special[i].text;
    return NULL;
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
