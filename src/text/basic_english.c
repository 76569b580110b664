/* basic_english.c -- torchtext's tokenizer "basic_english" as a step of lines
 * (torchtext.data.utils.get_tokenizer):
 *
 *   small letters (str.lower), then every
 *     '             a blank, ', two blanks        .  ,  (  )  !  ?     the same between blanks
 *     "             nothing                       ;  :  <br />         a blank
 *   and blanks separate words
 *
 * Its rules replace in the whole line, one after another. Only removing " can make another rule
 * match, so that comes first here, too.
 */
#include <stdlib.h>
#include <string.h>

#include "text/line_transform.h"
#include "text/unicode.h"

static const char line_break[] = "<br />";

/* The replacement of the text at p [left]; *taken: replaced bytes. */
static bool put_piece(byte_buffer *out, const char *p, size_t left, size_t *taken) {
    const size_t length = sizeof line_break - 1;
    *taken = 1;
    if (strchr(";:", *p)) return buffer_put(out, " ", 1);
    if (strchr("'.,()!?", *p)) return buffer_put(out, (const char[]){' ', *p, ' '}, 3);
    if (left >= length && !memcmp(p, line_break, length)) {
        *taken = length;
        return buffer_put(out, " ", 1);
    }
    return buffer_put(out, p, 1);
}

static sr_status basic_english(void *self, int side, const char *line, size_t length,
                               byte_buffer *out, sr_failure *why) {
    size_t lowered = 0;
    (void)self, (void)side;
    char *small = (char *)unicode_lower((const uint8_t *)line, length, &lowered);
    bool done = small != NULL;
    size_t size = 0;
    for (size_t i = 0; small && i < lowered; i++)
        if (small[i] != '"') small[size++] = small[i];
    for (size_t i = 0, taken; done && i < size; i += taken)
        done = put_piece(out, small + i, size - i, &taken);
    free(small);
    return done ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for a line of text");
}

line_transform basic_english_step(void) {
    return (line_transform){.name = BASIC_ENGLISH, .apply = basic_english};
}
