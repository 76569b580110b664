/* scalar_cache.c -- caches values of a scalar at neighbouring sites. Programs read site after site,
 * but a chunk has the rows of all sites. HDF5 would read every chunk once for each site.
 * Runs with the statistics of each shard have many: all sites of 2,048 over 1,000 steps take 0.1 s
 * with the cache, 5.2 s without. */
#include "runfile/read/file/scalar_cache.h"

#include <stdlib.h>
#include <string.h>

#include "runfile/read/file/open_file_cache.h"

enum { BAND_VALUES = 1 << 16, LEAST_SITES = 1024 };

static bool holds(const scalar_cache *b, const run_column *c, int64_t site, const h5_rows *rows) {
    return b->column == c && b->rows.first == rows->first && b->rows.count == rows->count &&
           site >= b->rows.column && site < b->rows.column + b->rows.columns;
}

bool scalar_cache_holds(const sr_runfile *f, int64_t count) {
    return f->info.sites >= LEAST_SITES && count > 0 && count <= BAND_VALUES / 2;
}

/* Reads values of neighbouring sites from this one on. */
static sr_status fill_band(const sr_runfile *f, scalar_cache *b, const run_column *c, int64_t site,
                           const h5_rows *one, scalar_cache_read_fn *read, sr_failure *why) {
    int64_t sites = BAND_VALUES / one->count;
    if (sites > f->info.sites - site) sites = f->info.sites - site;
    b->column = NULL;
    if (!b->value && !(b->value = malloc(BAND_VALUES * sizeof *b->value)))
        return sr_fail(why, SR_MEMORY, "%s: values of %s", f->path, c->name);
    b->rows = (h5_rows){one->first, one->count, site, sites, f->info.sites};
    const h5_rows narrow = {one->first, one->count, site, sites, sites};
    sr_status status = read(f, c, &narrow, H5_FLOAT32, b->value, why);
    if (status == SR_OK) b->column = c;
    return status;
}

/* The entry that has these rows, or the one to replace next. NULL when out of memory. */
static scalar_cache *choose_band(const sr_runfile *f, const run_column *c, const h5_rows *rows,
                                 sr_failure *why) {
    reader_cache *cache = reader_cache_of(f, why);
    if (!cache) return NULL;
    const int bands = sizeof cache->band / sizeof cache->band[0];
    for (int i = 0; i < bands; i++)
        if (holds(&cache->band[i], c, rows->column, rows)) return &cache->band[i];
    scalar_cache *b = &cache->band[cache->next_band];
    cache->next_band = (cache->next_band + 1) % bands;
    return b;
}

sr_status scalar_cache_read(const sr_runfile *f, const run_column *c, const h5_rows *rows,
                            scalar_cache_read_fn *read, float *value, sr_failure *why) {
    scalar_cache *b = choose_band(f, c, rows, why);
    sr_status status = b ? SR_OK : SR_MEMORY;
    if (b && !holds(b, c, rows->column, rows))
        status = fill_band(f, b, c, rows->column, rows, read, why);
    for (int64_t i = 0; i < rows->count && status == SR_OK; i++)
        value[i] = b->value[i * b->rows.columns + rows->column - b->rows.column];
    return status;
}
