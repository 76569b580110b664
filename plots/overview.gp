#: title one page of one run: losses, learning rate, gradients, distances, discrepancy at every site
#: question healthy
#: runs 1 RUN.h5
#: samples nlp_bn
#: size 6.75 7.2
#: controls smooth
#: table t stat-curve {run} --buckets {buckets}
#: curves t x epoch y loss,lr,grad_norm buckets 150
#: table? v stat-curve {run} --evals --metric valid_loss
#: curves v x epoch y valid_loss
#: table? d stat-distance {run} --per-step --buckets {buckets} --stat mu,sigma2,psi2
#: curves d by site x percent y dist_mu,dist_sigma2,dist_psi2 buckets 100 gaps kept
#: table? g stat-gradnorm {run} --per-step --buckets {buckets} --stat g_mu,g_sigma2,g_psi2
#: curves g by site x percent y g_mu,g_sigma2,g_psi2 buckets 100 gaps kept
#: table? i stat-tid {run} --per-step --buckets {buckets} --stat var
#: curves i by site x percent y tid_var buckets 100 gaps kept
#: table? l stat-lngrad {run} --per-step --buckets {buckets} --stat grad_var
#: curves l by site x percent y row_grad_var buckets 100 gaps kept
# First: loss (median and range; points: validation), gradient norm, learning rate. Then, for what the
# run's norm records: heat maps of every site (by depth, the first of the forward pass at the top) through training, medians of
# each 1/100, logarithmic colours.

legend_count = v_valid_loss_finite > 0 ? 2 : 1
observed = strstrt(run_full[1], ' (observed)')
legend_text[1] = observed > 0 ? run_full[1][1:observed-1] : run_full[1]
legend_type[1] = 1
legend_text[2] = 'validation'
legend_type[2] = line_look[1] == 2 ? 951 : 952
eval LEGEND_ROOM
legend_height = legend_height + 0.12
pad_left = 0.62
pad_right = 0.62
gap_x = 1.0
gap_y = 0.56

# What the run's own norm uses of the batch is not marked as observed.
has(word) = strstrt(run_uses[1], word) > 0
mark(name) = observed == 0 || name[1:3] eq 'row' || (strstrt(name, 'psi') > 0 ? has('psi2') : has('mu') || has('sigma2')) ? '' : ' (observed)'

unit_of(name) = name[1:4] eq 'tid_' ? ' (fraction)' : name eq 'dist_mu' ? ' (in units of x)' : name[1:5] eq 'dist_' ? ' (in units of x²)' : \
    name eq 'row_grad_var' ? ' (in units of dx²)' : ' (in units of dx)'

# Panels below the first row, in this order, as far as there is data.
array map_file[8]
array map_name[8]
array map_column[8]
array map_low[8]
array map_high[8]
array map_sites[8]
array map_rows[8]
array map_table[8]
maps = 0
MAP = 'maps = maps + 1; map_file[maps] = f; map_name[maps] = n; map_column[maps] = c; '. \
      'map_low[maps] = lo; map_high[maps] = hi; map_sites[maps] = s; map_rows[maps] = r; map_table[maps] = f[1:1]'
if (d_dist_mu_finite > 0)     { f = d; n = 'dist_mu'; c = d_dist_mu; lo = d_dist_mu_positive; hi = d_dist_mu_largest; s = d_curves; r = d_rows; eval MAP }
if (d_dist_sigma2_finite > 0) { f = d; n = 'dist_sigma2'; c = d_dist_sigma2; lo = d_dist_sigma2_positive; hi = d_dist_sigma2_largest; s = d_curves; r = d_rows; eval MAP }
if (d_dist_psi2_finite > 0)   { f = d; n = 'dist_psi2'; c = d_dist_psi2; lo = d_dist_psi2_positive; hi = d_dist_psi2_largest; s = d_curves; r = d_rows; eval MAP }
if (g_g_mu_finite > 0)        { f = g; n = 'g_mu'; c = g_g_mu; lo = g_g_mu_positive; hi = g_g_mu_largest; s = g_curves; r = g_rows; eval MAP }
if (g_g_sigma2_finite > 0)    { f = g; n = 'g_sigma2'; c = g_g_sigma2; lo = g_g_sigma2_positive; hi = g_g_sigma2_largest; s = g_curves; r = g_rows; eval MAP }
if (g_g_psi2_finite > 0)      { f = g; n = 'g_psi2'; c = g_g_psi2; lo = g_g_psi2_positive; hi = g_g_psi2_largest; s = g_curves; r = g_rows; eval MAP }
if (i_tid_var_finite > 0)     { f = i; n = 'tid_var'; c = i_tid_var; lo = i_tid_var_positive; hi = i_tid_var_largest; s = i_curves; r = i_rows; eval MAP }
if (l_row_grad_var_finite > 0) { f = l; n = 'row_grad_var'; c = l_row_grad_var; lo = l_row_grad_var_positive; hi = l_row_grad_var_largest; s = l_curves; r = l_rows; eval MAP }
columns = narrow(2, 0.9) ? 1 : 2
# What the run does not record has no panel.
first_cells = 1 + (t_grad_norm_finite > 0) + (t_lr_finite > 0)
cells = first_cells + maps
rows = int((cells - 1) / columns) + 1
# Inches of a row; a column of them fills a page.
figure_height = grow(figure_height - 7.2 + (columns == 1 ? 1.25 : 1.8) * rows)
eval terminal(figure_height)
column_of(k) = 1 + (k - 1) % columns
row_of(k) = 1 + (k - 1) / columns
place(k) = panel(column_of(k), columns, row_of(k), rows)

eval span('t', 't_x')
last = span_high
if (v_curves > 0) {
    eval span('v', 'v_x')
    last = span_count > 0 && span_high > last ? span_high : last
}
set xrange [0:last > 0 ? last * 1.01 : 1] noextend

set multiplot
set xlabel t_over offset 0,0.7
eval place(1)
set title 'loss'.enhanced_safe(v_valid_loss_finite > 0 ? valid_unit : train_unit) offset 0,-0.7
low(a, b) = a < b ? a : b
high(a, b) = a > b ? a : b
if (v_valid_loss_finite > 0) {
    eval linear_y(low(t_loss_least, v_valid_loss_least), high(t_loss_largest, v_valid_loss_largest))
    plot t using t_x:t_loss_low:t_loss_high with filledcurves linetype 1 fillstyle transparent solid 0.28 noborder, \
         t using t_x:t_loss with lines linetype 1, v using v_x:v_valid_loss with linespoints linetype legend_type[2]
} else {
    eval linear_y(t_loss_least, t_loss_largest)
    plot t using t_x:t_loss_low:t_loss_high with filledcurves linetype 1 fillstyle transparent solid 0.28 noborder, \
         t using t_x:t_loss with lines linetype 1
}
if (t_grad_norm_finite > 0) {
    eval place(2)
    set title 'gradient norm' offset 0,-0.7
    eval log_y(t_grad_norm_positive, t_grad_norm_largest)
    plot t using t_x:t_grad_norm_low:t_grad_norm_high with filledcurves linetype 1 fillstyle transparent solid 0.28 noborder, \
         t using t_x:t_grad_norm with lines linetype 1
}
if (t_lr_finite > 0) {
    eval place(first_cells)
    set title 'learning rate' offset 0,-0.7
    eval linear_y(0, t_lr_largest)
    plot t using t_x:t_lr with lines linetype 1
}

set xlabel 'training (%)' offset 0,0.7
eval percent_x(25)
unset grid
set border 15
set format y '%g'
do for [m=1:maps] {
    k = m + first_cells
    eval place(k)
    set colorbox user origin screen ((panel_left(column_of(k), columns) + panel_width(columns) + 0.06) / figure_width), \
        screen (panel_bottom(row_of(k), rows) / figure_height) size screen (0.08 / figure_width), screen (panel_height(rows) / figure_height) noborder
    set title stat_name(map_name[m]).unit_of(map_name[m]).mark(map_name[m]) noenhanced offset 0,-0.7
    set ylabel 'depth of the site' offset -0.3,0
    eval sprintf('first = %s_depth[1]; deepest = %s_depth[%d]', map_table[m], map_table[m], map_sites[m])
    set ytics autofreq
    eval sprintf('set ytics %d', tic_step(deepest - first + 1, deepest - first < 9 && panel_height(rows) > 1 ? deepest - first + 1 : int(panel_height(rows) / 0.13)))
    eval log_cb(map_low[m], map_high[m])
    eval depth_map(map_file[m], map_table[m], map_column[m], first, deepest, map_sites[m], map_rows[m])
}
set border 3
eval LEGEND_DRAW
unset multiplot
