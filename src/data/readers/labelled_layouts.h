/* labelled_layouts.h -- classified texts as they are distributed, made into the lines `label TAB
 * text` that read_labelled.c reads. */
#ifndef DATA_READERS_LABELLED_LAYOUTS_H
#define DATA_READERS_LABELLED_LAYOUTS_H

#include "data/dataset.h"
#include "text/text.h"

/* Reads a folder for each class with a file for each text, as aclImdb: DIR/NAME/CLASS/FILE, NAME
 * also without its extension. Classes and files are in the order of their names' bytes. The folder
 * "unsup", backup copies (NAME~, NAME.bak) and NAME.gz beside NAME are left out. `names` gets
 * "CLASS/FILE" of each line, with a zero byte after it. *found false: there is no such folder. */
sr_status labelled_folders(dataset *d, const data_options *o, const char *name, file_bytes *f,
                           byte_buffer *names, bool *found, sr_failure *why);

/* Replaces lines of trees, `(3 (2 A) (3 film))` as the Stanford Sentiment Treebank's: the label of
 * the root, the leaves as words. *trees false: line 1 is no tree, nothing changes. SR_FORMAT with
 * file and line for a broken tree. */
sr_status labelled_trees(file_bytes *f, bool *trees, sr_failure *why);

#endif
