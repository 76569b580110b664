#: title one vector of a site through training, feature by feature
#: question features
#: runs 1 RUN.h5
#: samples nlp_bn_bucketed
#: size 6.75 2.9
#: controls x y scale smooth steps
#: site first
#: stat mu_B
#: choice order outlier|largest|feature from top to bottom: by outlier score, by largest absolute value, or by number
#: choice show median|smallest|largest which value of the steps that share a field
#: table h stat-features {run} --per-feature --site {site} --stat {stat} --order {order} --buckets {buckets} --phase {steps}
#: curves h by site,feature x percent y {stat} buckets 200 gaps kept
# A row per feature, a field per recorded step; of more than 200 steps each 1/200 of training. A panel per site. --stat takes a vector
# of the run file (mu_B, sigma2_B, psi2_B, gamma, sum_g, running values ...) or a comparison with running values (mu_difference,
# mu_shift, sigma_ratio ...): stat-features --help lists them. Few recorded steps have a mark above the panel each: their
# fields reach halfway to their neighbours.

array cell_site[h_curves]
array cell_first[h_curves]
array cell_count[h_curves]
cells = 0
site_of(k) = h_key[k][1:strlen(h_key[k])-strlen(word(h_key[k], words(h_key[k])))-1]
feature_of(k) = word(h_key[k], words(h_key[k]))
do for [k=1:h_curves] {
    if (k == 1 || !(site_of(k) eq cell_site[cells])) {
        cells = cells + 1
        cell_site[cells] = site_of(k)
        cell_first[cells] = k
        cell_count[cells] = 0
    }
    cell_count[cells] = cell_count[cells] + 1
}
if (cells > 12) { eval refuse(sprintf('%d sites are more than 12: choose with --site', cells)) }

shown = show eq 'median' ? h_y1 : show eq 'smallest' ? h_y1_low : h_y1_high
never_negative = strstrt(' sigma2_B psi2_B sigma2 psi2 Gamma_t sigma_ratio psi_ratio ', ' '.stat.' ') > 0
signed = h_y1_least <= 0 && !never_negative && figure_scale ne 'log'
if (signed) { figure_scale = 'linear' }
eval span_of('h', 'shown', user_scale('log') eq 'log' ? '(column(shown) > 0 ? column(shown) : NaN)' : 'column(shown)')
if (span_count == 0) { eval refuse('--stat '.stat.' has no '.(user_scale('log') eq 'log' ? 'value above 0' : 'finite value').' here') }
lowest = span_low
highest = span_high

# Where the steps are: an image needs equal distances, as the parts of training have.
steps_drawn = h_rows
array at[steps_drawn]
array field_from[steps_drawn]
array field_to[steps_drawn]
stats h index 0 using (at[int(column(0))+1] = column(h_x)) nooutput name 'AT'
nearest = 100.0
farthest = 0.0
do for [i=2:steps_drawn] {
    nearest = at[i] - at[i-1] < nearest ? at[i] - at[i-1] : nearest
    farthest = at[i] - at[i-1] > farthest ? at[i] - at[i-1] : farthest
}
as_image = steps_drawn >= 12 && farthest < 1.5 * nearest
do for [i=1:steps_drawn] {
    field_from[i] = i > 1 ? 0.5 * (at[i-1] + at[i]) : steps_drawn > 1 ? at[1] - 0.5 * (at[2] - at[1]) : at[1] - 2
    field_to[i] = i < steps_drawn ? 0.5 * (at[i] + at[i+1]) : steps_drawn > 1 ? at[i] + 0.5 * (at[i] - at[i-1]) : at[1] + 2
}
marked = steps_drawn <= 40

pad_left = 0.62
pad_right = 0.8
gap_x = 0.62
legend_height = 0.12
eval RUN_PANELS
# A statistic of both signs has a colour for each.
eval signed && lowest < 0 ? signed_cb(lowest, highest) : lowest < highest || !signed ? (user_scale('log') eq 'log' ? log_cb(lowest, highest) : linear_cb(lowest, highest)) : linear_cb(lowest, highest)
unset grid
set border 15
set title enhanced offset 0,(marked ? -0.35 : -0.7)

every_row(c) = tic_step(cell_count[c], int(panel_height(cell_rows) / 0.11)) > 1 ? tic_step(cell_count[c], int(panel_height(cell_rows) / 0.11)) : 1
labelled(c, k) = order eq 'feature' ? int(feature_of(k)) % int(every_row(c)) == 0 : (k - cell_first[c]) % int(every_row(c)) == 0
set multiplot
do for [c=1:cells] {
    eval cell_panel(c)
    eval percent_x(25)
    set xlabel (c + cell_columns > cells ? 'training (%)' : '') offset 0,0.7
    set ylabel (cell_column(c) == 1 ? (order eq 'feature' ? 'feature' : order eq 'outlier' ? 'feature, by outlier score' : 'feature, by largest value') : '') offset 0.4,0
    set title enhanced_safe(cut(cell_site[c], title_most - 20 > 12 ? title_most - 20 : 12)).': '.vector_name(stat).(show eq 'median' ? '' : ', '.show)
    set ytics scale 0 font ',7' ("" 0)
    do for [k=cell_first[c]:cell_first[c]+cell_count[c]-1] {
        if (labelled(c, k)) { set ytics add (feature_of(k) k - cell_first[c] + 1) }
    }
    if (marked) { do for [i=1:steps_drawn] { set label 900 + i "" at at[i], graph 1.02 point pointtype 11 pointsize 0.35 linecolor rgb '#404040' } }
    if (c == 1) {
        set colorbox user origin screen (1 - 0.7 / figure_width), screen (panel_bottom(1, cell_rows) / figure_height) \
            size screen (0.1 / figure_width), screen (panel_height(cell_rows) / figure_height) noborder
    }
    set yrange [cell_count[c] + 0.5:0.5] noextend
    block = sprintf('h index %d:%d using ', cell_first[c] - 1, cell_first[c] + cell_count[c] - 2)
    row = sprintf('(column(-2)-%d+2)', cell_first[c])
    if (as_image && cell_count[c] > 1) {
        eval 'plot '.block.'1:'.row.':shown with image'
    } else {
        eval 'plot '.block.'1:'.row.':(field_from[int(column(0))+1]):(field_to[int(column(0))+1]):('.row.'-0.5):('.row.'+0.5):shown with boxxyerror fillcolor palette fillstyle solid noborder'
    }
    unset colorbox
}
eval LEGEND_DRAW
unset multiplot
