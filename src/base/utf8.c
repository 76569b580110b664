#include "base/utf8.h"

#include <stdbool.h>

int utf8_bytes(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < 0x80) return 1;
    const int more = at[0] >= 0xc2 && at[0] < 0xe0   ? 1
                     : at[0] >= 0xe0 && at[0] < 0xf0 ? 2
                     : at[0] >= 0xf0 && at[0] < 0xf5 ? 3
                                                     : 0;
    for (int i = 1; i <= more; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    if (at[0] == 0xe0 && at[1] < 0xa0) return 0; /* longer than it need be */
    if (at[0] == 0xed && at[1] > 0x9f) return 0; /* half of a pair of UTF-16 */
    if (at[0] == 0xf0 && at[1] < 0x90) return 0;
    if (at[0] == 0xf4 && at[1] > 0x8f) return 0; /* beyond U+10FFFF */
    return more ? 1 + more : 0;
}

/* Of three bytes, and no more than 0xffff. */
static int point_of_three(const unsigned char *at) {
    return (at[0] & 0x0f) << 12 | (at[1] & 0x3f) << 6 | (at[2] & 0x3f);
}

int utf8_shown(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    const int bytes = utf8_bytes(text);
    if (bytes == 1) return at[0] >= ' ' && at[0] != 0x7f;
    if (bytes == 2 && at[0] == 0xc2 && at[1] < 0xa0) return 0;
    if (bytes == 2 && at[0] == 0xd8 && at[1] == 0x9c) return 0; /* U+061C */
    if (bytes != 3) return bytes;
    const int point = point_of_three(at);
    const bool turns = point == 0x200e || point == 0x200f || (point >= 0x202a && point <= 0x202e) ||
                       (point >= 0x2066 && point <= 0x2069);
    return turns || point == 0x2028 || point == 0x2029 ? 0 : bytes;
}
