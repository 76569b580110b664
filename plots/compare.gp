#: title one statistic at every site, runs overlaid
#: question compare
#: runs 1- RUN.h5 [MORE.h5...]
#: samples nlp_bn figures/rbn_1
#: size 6.75 2.3
#: tasks one
#: controls x y scale smooth steps
#: site *
#: stat tid_var
#: table all stat-scalar {runs} --site {site} --stat {stat}
#: table? d stat-scalar {run} --per-step --buckets {buckets} --phase {steps} --site {site} --stat {stat}
#: curves d by site x percent y {stat} buckets 50
# A panel per name of a site, in the order of the forward pass, many on a higher page (--site chooses); a line per run:
# median of each 1/50 of training; band: smallest to largest value, so no outlier is lost. One scale for
# all sites. Of two runs a panel says (×) how their medians over the steps after burn-in compare, as the table `all` has them. --stat NAME draws any recorded scalar, also one that the runs declare; runs without it are left out.
# The table `all` fails when no run has it.

most_panels = 120
# Medians of the two runs at each site, NaN where one has none.
array median_of[2 * d_curves]
array run_path[2]
paths = 0
path_of(p) = paths > 0 && p eq run_path[1] ? 1 : paths > 1 && p eq run_path[2] ? 2 : paths < 2 ? (paths = paths + 1, run_path[paths] = p, paths) : 0
array panel_site[d_curves]
panels = 0
do for [k=1:d_curves] {
    known = 0
    do for [i=1:panels] { if (panel_site[i] eq d_key[k]) { known = 1 } }
    if (!known) { panels = panels + 1; panel_site[panels] = d_key[k] }
}
do for [i=1:2*panels] { median_of[i] = NaN }
at_site(name) = sum [i=1:panels] (in_data(panel_site[i]) eq name ? i : 0)
keep_median(run, at, v) = run > 0 && at > 0 ? (median_of[2*at-2+run] = v, 1) : 1
if (runs == 2) {
    stats all using (keep_median(path_of(strcol(all_run)), at_site(strcol(all_site)), cell(all_median))) nooutput name 'MEDIAN'
}
ratio_text(i) = paths == 2 && median_of[2*i-1] != 0 && median_of[2*i] / median_of[2*i-1] == median_of[2*i] / median_of[2*i-1] ? \
    sprintf('× %.3g', median_of[2*i] / median_of[2*i-1]) : ''
if (panels > most_panels) { eval refuse(sprintf('%d panels are more than %d: choose with --site', panels, most_panels)) }
do for [k=1:d_curves] {
    if (k == 1 || d_run[k] != legend_type[legend_count]) {
        legend_count = legend_count + 1
        legend_text[legend_count] = run_label[d_run[k]]
        legend_type[legend_count] = d_run[k]
    }
}
eval BURN_IN_ENTRY
eval BURN_IN_NOTE
ratios = 0
do for [i=1:panels] { ratios = ratios + (strlen(ratio_text(i)) > 0) }
eval NOTE(ratios > 0 ? '×: median of '.run_label[2].' over median of '.run_label[1].', after burn-in' : '')
eval LEGEND_ROOM
legend_height = legend_height + 0.12
gap_x = 0.3
gap_y = 0.26
# As many columns of at least an inch as fit, up to four; of those the number that leaves the fewest cells empty.
most = 1
do for [n=2:4] { if (n <= panels && panel_width(n) >= 1) { most = n } }
empty(n) = int((panels + n - 1) / n) * n - panels
columns = most
do for [n=most:2:-1] { if (empty(n) < empty(columns)) { columns = n } }
rows = int((panels + columns - 1) / columns)
page_height = head_height + note_height + legend_height + pad_bottom + rows * (rows > 6 ? 0.8 : 1.2) + (rows - 1) * gap_y
if (page_height > figure_height) { figure_height = grow(page_height); eval terminal(figure_height) }
eval percent_x(percent_tics(columns))
set title noenhanced font ',7' offset 0,-0.75

# The curves of one panel; only numbers get into the command.
band(k) = sprintf('d index %d using d_x:d_y1_low:d_y1_high with filledcurves linetype %d fillstyle transparent solid %g noborder, ', k - 1, d_run[k], runs > 3 ? 0.15 : 0.28)
line(k) = sprintf('d index %d using d_x:d_y1 with lines linetype %d, ', k - 1, d_run[k])

# A number that the runs declare may have any sign.
signed = stat_own && d_y1_least <= 0
eval of_unit(stat_unit)
set multiplot
do for [i=1:panels] {
    c = 1 + (i - 1) % columns
    r = 1 + int((i - 1) / columns)
    eval panel(c, columns, r, rows)
    if (!signed && (d_y1_positive < d_y1_largest || d_y1_least > 0)) { eval log_y(d_y1_positive, d_y1_largest) } else { eval linear_y(d_y1_least, d_y1_largest) }
    if (c > 1) { set ytics autofreq; set format y '' }
    set format x (i + columns > panels ? '%g' : '')
    unset xlabel
    if (i + columns > panels) { set xlabel 'training (%)' offset 0,0.7 }
    set ylabel (c == 1 ? stat_name(stat) : '') noenhanced offset 0.3,0
    set title panel_site[i]
    eval STARTUP('')
    set label 98 ratio_text(i) at graph 0.97, graph 0.93 right font ',7' textcolor rgb '#404040' noenhanced front
    bands = ''
    lines = ''
    do for [k=1:d_curves] {
        if (d_key[k] eq panel_site[i]) {
            bands = bands.band(k)
            lines = lines.line(k)
        }
    }
    eval 'plot '.bands.lines[1:strlen(lines)-2]
}
unset format
unset label 98
eval LEGEND_DRAW
unset multiplot
