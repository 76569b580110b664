#include "statnet/utf8.h"

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
