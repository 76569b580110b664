/* h5_guard.c -- checks objects of an untrusted file before they are read.
 *
 * HDF5 follows links into other files, reads values of a dataset from any file, and builds virtual
 * datasets from others. It loads plugins for filters, and trusts all sizes in a file. Run files and
 * checkpoints need none of this. Their objects have hard links only. Their values are in the file
 * itself: contiguous, in chunks, or in the object's header. Their only filter is HDF5's checksum,
 * and their types are the few of h5.h. The guard rejects everything else, and puts the reason on
 * HDF5's error stack for h5_end.
 *
 * It compares sizes with n, the bytes of the file.
 * - A dataset of fixed size has all its bytes in the file.
 * - A growing dataset may declare rows that were never written, but has at most CHUNKS_LEAST + 4 n
 *   chunks. HDF5 visits all of them to compute the stored bytes.
 * - A chunk has at most CHUNK_LEAST + 2 n bytes, since HDF5 keeps it in memory. Under a checksum it
 *   has exactly the bytes of its values and the checksum.
 */
#include "hdf5/guard/h5_guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CHUNKS_LEAST = 1 << 18, CHUNK_LEAST = 1 << 20, SUMMED_MOST = 4096, SUM_BYTES = 4 };

const char h5_guard_name[] = "guard";

/* Puts the reason on the error stack. No later call of HDF5 may clear it before h5_end. */
static bool refuse(const char *reason) {
    H5Eclear2(H5E_DEFAULT);
    H5Epush2(H5E_DEFAULT, __FILE__, h5_guard_name, __LINE__, H5E_ERR_CLS, H5E_ARGS, H5E_BADVALUE,
             "%s", reason);
    return false;
}

/* -- links ----------------------------------------------------------------------------------- */

static bool is_hard(H5L_type_t type) {
    if (type == H5L_TYPE_HARD) return true;
    if (type == H5L_TYPE_SOFT) return refuse("a soft link, not the object itself");
    if (type == H5L_TYPE_EXTERNAL) return refuse("a link into another file");
    return refuse("a link of a kind that no run file has");
}

/* Above 0: a hard link; 0: none; below 0: another one, or damage. */
static htri_t find_link(hid_t at, const char *name) {
    H5L_info_t link;
    if (H5Lget_info(at, name, &link, H5P_DEFAULT) < 0) {
        const htri_t found = H5Lexists(at, name, H5P_DEFAULT);
        if (found > 0) refuse("a link that cannot be read");
        return found > 0 ? -1 : found;
    }
    return is_hard(link.type) ? 1 : -1;
}

/* Links of a group may lie under filters; the group then has a filter pipeline message (file format
 * specification IV.A.2.l). Opening the group to read its properties would take several times as
 * long. */
static bool is_plain_group(hid_t file, const char *path) {
    enum { PIPELINE = 0x000b };
    H5O_info_t info;
    if (H5Oget_info_by_name2(file, path, &info, H5O_INFO_BASIC | H5O_INFO_HDR, H5P_DEFAULT) < 0)
        return false;
    if (info.type != H5O_TYPE_GROUP) return refuse("not a group");
    if (info.hdr.mesg.present >> PIPELINE & 1) return refuse("a group under filters");
    return true;
}

/* Searches from the root: in a file that this process writes, and without a place for the group. */
static htri_t walk(hid_t file, const char *path) {
    char way[H5_NAME_SIZE];
    if (strlen(path) >= sizeof way) return 0; /* unreached: every path is an h5_path */
    if (!is_plain_group(file, "/")) return -1;
    for (const char *at = path + 1; *at; at++) {
        at += strcspn(at, "/");
        snprintf(way, sizeof way, "%.*s", (int)(at - path), path);
        const htri_t found = find_link(file, way);
        if (found <= 0) return found;
        if (!*at) break;
        if (!is_plain_group(file, way)) return -1;
    }
    return 1;
}

/* A file that is only read; NULL: this process writes it. */
static h5_reading *reading_of(hid_t file) {
    unsigned intent = 0;
    void *at = NULL;
    if (H5Fget_intent(file, &intent) < 0 || (intent & H5F_ACC_RDWR)) return NULL;
    return H5Fget_vfd_handle(file, H5P_DEFAULT, &at) >= 0 ? at : NULL;
}

static hid_t kept_group(const h5_reading *r, const char *path, size_t length) {
    for (int i = 0; i < r->groups; i++)
        if (strncmp(r->group[i].path, path, length) == 0 && !r->group[i].path[length])
            return r->group[i].id;
    return -1;
}

/* Whether the group has a place, with the groups that lead to it. */
static bool has_place(const h5_reading *r, const char *path, size_t length) {
    int wanted = 1;
    for (size_t i = 0; i < length; i++) wanted += path[i] == '/';
    return kept_group(r, path, length) >= 0 ||
           (length < H5_GROUP_PATH && wanted <= H5_KEPT_GROUPS - r->groups);
}

/* The group at the first `length` bytes of path, open until the file is closed. Without it, HDF5
 * would search and check each path from the root. *found: as in h5_way. */
static hid_t open_group(hid_t file, h5_reading *r, const char *path, size_t length, htri_t *found) {
    char whole[H5_GROUP_PATH];
    hid_t at = file, id = kept_group(r, path, length);
    *found = 1;
    if (id >= 0) return id;
    *found = -1;
    snprintf(whole, sizeof whole, "%.*s", (int)length, path);
    char *name = strrchr(whole, '/');
    if (name) {
        at = open_group(file, r, path, (size_t)(name - whole), found);
        if (at < 0 || (*found = find_link(at, name + 1)) <= 0) return -1;
        *found = -1;
    }
    name = name ? name + 1 : "/";
    id = is_plain_group(at, name) ? H5Gopen2(at, name, H5P_DEFAULT) : -1;
    if (id < 0) return -1;
    snprintf(r->group[r->groups].path, sizeof whole, "%s", whole);
    r->group[r->groups++].id = id;
    *found = 1;
    return id;
}

bool h5_guard_complete(hid_t file) {
    const h5_reading *r = reading_of(file);
    if (!r || !r->failed) return true;
    errno = r->failed;
    h5_driver_fail(false, "read");
    return false;
}

static h5_way search(hid_t file, const char *path) {
    h5_reading *r = reading_of(file);
    const char *last = strrchr(path, '/');
    h5_way way = {.at = file, .name = path};
    if (!r || !has_place(r, path, (size_t)(last - path))) {
        way.found = walk(file, path);
        return way;
    }
    const hid_t group = open_group(file, r, path, (size_t)(last - path), &way.found);
    if (group < 0 || !last[1]) return way; /* "/": the file */
    return (h5_way){find_link(group, last + 1), group, last + 1};
}

h5_way h5_reach(hid_t file, const char *path) {
    h5_way way = search(file, path);
    if (way.found == 0 && !h5_guard_complete(file)) way.found = -1;
    return way;
}

/* HDF5 1.10 crashes when it lists a group with an unreadable link. The search for an absent name
 * reads all links, and fails without a crash. */
bool h5_guard_links(hid_t at, const char *group) {
    char name[2 * H5_NAME_SIZE];
    if (snprintf(name, sizeof name, "%s/\x01", group) >= (int)sizeof name) return false;
    return H5Lexists(at, name, H5P_DEFAULT) >= 0 && h5_guard_complete(at);
}

/* -- datasets -------------------------------------------------------------------------------- */

static bool check_type(hid_t type) {
    if (H5Tcommitted(type) > 0) return refuse("of a committed type");
    const H5T_class_t class = H5Tget_class(type);
    if (class == H5T_STRING)
        return H5Tis_variable_str(type) ? refuse("a text of variable length") : true;
    const hid_t known[] = {H5T_STD_I32LE,  H5T_STD_I64LE,  H5T_STD_U64LE,
                           H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_U8LE};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (H5Tequal(type, known[i]) > 0) return true;
    return refuse("of a type that no run file has");
}

static bool check_filters(hid_t properties) {
    const int filters = H5Pget_nfilters(properties);
    for (int i = 0; i < filters; i++) {
        unsigned flags, config[8];
        size_t count = sizeof config / sizeof *config;
        const H5Z_filter_t filter =
            H5Pget_filter2(properties, (unsigned)i, &flags, &count, config, 0, NULL, NULL);
        if (filter != H5Z_FILTER_FLETCHER32) return refuse("under a filter that no run file has");
    }
    return filters >= 0;
}

/* The first check of a dataset: its values may be elsewhere. */
static bool check_storage(hid_t properties) {
    const H5D_layout_t layout = H5Pget_layout(properties);
    if (layout == H5D_VIRTUAL) return refuse("a virtual dataset, made up from others");
    if (layout < 0 || layout > H5D_CHUNKED) return refuse("of an unknown layout");
    if (layout != H5D_CHUNKED && H5Pget_external_count(properties) != 0)
        return refuse("its values are in another file");
    return check_filters(properties);
}

typedef struct extent {
    int rank;
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    hsize_t bytes; /* size of one value */
    hsize_t file;  /* bytes of the file */
} extent;

static bool multiply(hsize_t *to, hsize_t by) {
    return !__builtin_mul_overflow(*to, by, to);
}

/* shape: NULL, or as of h5_open_dataset. */
static void fill_shape(const extent *e, hid_t type, h5_shape *shape) {
    if (!shape) return;
    *shape = (h5_shape){.type = h5_name_type(type), .rank = e->rank};
    if (shape->type == H5_TEXT) shape->text = (size_t)e->bytes;
    for (int i = 0; i < e->rank; i++) shape->dims[i] = (int64_t)e->dims[i];
    for (int i = 0; i < e->rank; i++) {
        /* unreached: HDF5 1.10 opens no such dataset */
        if (e->dims[i] > INT64_MAX) *shape = (h5_shape){.rank = -1};
    }
}

static bool read_extent(hid_t set, extent *e, h5_shape *shape) {
    hid_t space = H5Dget_space(set), type = space < 0 ? -1 : H5Dget_type(set);
    const H5S_class_t class = type < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
    bool ok = type >= 0;
    if (ok && class == H5S_SIMPLE) {
        e->rank = H5Sget_simple_extent_dims(space, e->dims, e->most);
        ok = e->rank >= 0;
    } else if (ok && class != H5S_SCALAR)
        ok = refuse("without a shape");
    ok = ok && check_type(type);
    if (ok) ok = (e->bytes = H5Tget_size(type)) > 0;
    if (ok && e->rank > H5_RANK) ok = refuse("of more dimensions than a run file has");
    if (ok) fill_shape(e, type, shape);
    h5_release(type), h5_release(space);
    return ok;
}

/* Every value is stored in the file. */
static bool check_stored(hid_t set, const extent *e) {
    hsize_t bytes = e->bytes;
    bool fits = true;
    for (int i = 0; i < e->rank; i++)
        if (e->dims[i] == 0) return true;
    for (int i = 0; i < e->rank && fits; i++) fits = multiply(&bytes, e->dims[i]);
    H5Eclear2(H5E_DEFAULT); /* H5Dget_storage_size returns 0 for a failure, too */
    const hsize_t stored = H5Dget_storage_size(set);
    if (H5Eget_num(H5E_DEFAULT) != 0) return false;
    if (fits && bytes <= e->file && bytes <= stored) return true;
    return refuse("larger than its stored bytes");
}

static bool check_chunks(hid_t properties, const extent *e) {
    hsize_t chunk[H5S_MAX_RANK], bytes = e->bytes, count = 1;
    bool fits = H5Pget_chunk(properties, H5S_MAX_RANK, chunk) == e->rank;
    for (int i = 0; i < e->rank && fits; i++) {
        if (chunk[i] == 0) return false; /* unreached: h5_messages.c, or a newer HDF5, reports it */
        fits = multiply(&bytes, chunk[i]);
        if (fits && e->dims[i] > 0) fits = multiply(&count, (e->dims[i] - 1) / chunk[i] + 1);
    }
    if (!fits || bytes > CHUNK_LEAST + 2 * e->file)
        return refuse("in chunks larger than the file has bytes for");
    if (count > CHUNKS_LEAST + 4 * e->file)
        return refuse("of more rows than the file has bytes for");
    return true;
}

/* HDF5 1.10 copies a whole chunk of values, however few bytes its filters return. */
static bool check_summed(hid_t set, hid_t properties, const extent *e) {
    hsize_t chunk[H5S_MAX_RANK], bytes = e->bytes, count = 0, stored = 0;
    unsigned skipped = 0;
    if (H5Pget_nfilters(properties) == 0) return true;
    if (H5Pget_chunk(properties, H5S_MAX_RANK, chunk) != e->rank) return false;
    for (int i = 0; i < e->rank; i++) bytes *= chunk[i];
    hid_t space = H5Dget_space(set);
    bool ok = space >= 0 && H5Dget_num_chunks(set, space, &count) >= 0;
    if (ok && count > SUMMED_MOST) ok = refuse("in more chunks with sums than a file has");
    for (hsize_t i = 0; i < count && ok; i++) {
        haddr_t at;
        ok = H5Dget_chunk_info(set, space, i, NULL, &skipped, &at, &stored) >= 0;
        if (ok && stored != bytes + (skipped ? 0 : SUM_BYTES))
            ok = refuse("a chunk is not as long as its values");
    }
    h5_release(space);
    return ok;
}

bool h5_guard_dataset(hid_t set, int64_t file_bytes, h5_shape *shape) {
    extent e = {.file = (hsize_t)file_bytes};
    hid_t properties = H5Dget_create_plist(set);
    bool ok = properties >= 0 && check_storage(properties) && read_extent(set, &e, shape);
    const bool chunked = ok && H5Pget_layout(properties) == H5D_CHUNKED;
    if (chunked) ok = check_chunks(properties, &e) && check_summed(set, properties, &e);
    const bool grows = chunked && e.most[0] == H5S_UNLIMITED;
    if (ok && !grows) ok = check_stored(set, &e);
    if (shape) shape->stored = ok && !grows;
    h5_release(properties);
    return ok;
}

bool h5_guard_stored(hid_t set, int64_t file_bytes) {
    extent e = {.file = (hsize_t)file_bytes};
    return read_extent(set, &e, NULL) && check_stored(set, &e);
}

bool h5_guard_attribute(hid_t attribute, H5T_class_t class, size_t *size) {
    hid_t type = H5Aget_type(attribute), space = type < 0 ? -1 : H5Aget_space(attribute);
    bool ok = space >= 0 && check_type(type);
    if (ok && (H5Tget_class(type) != class || H5Sget_simple_extent_npoints(space) != 1))
        ok = refuse(class == H5T_STRING ? "not one text of fixed length" : "not one whole number");
    *size = ok ? H5Tget_size(type) : 0;
    h5_release(type), h5_release(space);
    return *size > 0;
}
