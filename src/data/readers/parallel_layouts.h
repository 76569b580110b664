/* parallel_layouts.h -- parallel texts with markup, as the IWSLT evaluation distributes them. */
#ifndef DATA_READERS_PARALLEL_LAYOUTS_H
#define DATA_READERS_PARALLEL_LAYOUTS_H

#include "data/data_options.h"
#include "text/text.h"

/* Checks that the sentences of two texts with markup belong together. Ids of <seg> are equal, and
 * the same number of sentences lies between tags of a training text. SR_FORMAT names the first two
 * lines that do not fit. Texts without markup, and <seg> without an id, fit. */
sr_status parallel_match_sides(const file_bytes side[SIDES], sr_failure *why);

/* Keeps the sentences of a text with markup, one on a line. *left_out counts the other lines.
 * *number [*lines], malloc'd, has the numbers of the kept lines, from 1 (unchanged for other
 * texts). A set in XML (line 1 is <?xml, <mteval, <srcset, <refset or <tstset): what <seg> and
 * </seg> enclose. Training text (line 1 starts with <url>, <title> or the like): lines without such
 * a tag. Other texts stay, 0 left out. Entities such as &amp; stay, as the papers' scripts leave
 * them. SR_FORMAT for a <seg> that does not end on its line. */
sr_status parallel_strip_markup(file_bytes *f, int64_t *lines, int64_t **number, int64_t *left_out,
                                sr_failure *why);

#endif
