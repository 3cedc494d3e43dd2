# Prints the tables of a page of results: the steps, and each prediction beside the measurement. Reads
# steps.tsv, measured.tsv, peers.tsv and predictions.tsv, in that order, and tells them apart by their names.
# The predictions are for an H200. For another GPU they are scaled by the ratio of the copies' speeds (`copy`,
# in GB/s): right for work that memory bounds, and a guess for the rest.
BEGIN {
    FS = "\t"
    scale = gpu !~ /H200/ && copy > 0 && tiny != "tiny" ? 4300 / copy : 1
}

function time(seconds) {
    if (seconds == "") return "-"
    if (seconds >= 1) return sprintf("%.2f s", seconds)
    if (seconds >= 0.001) return sprintf("%.3f ms", seconds * 1e3)
    return sprintf("%.1f µs", seconds * 1e6)
}
# An id without the device, and without the rows if inputs are tiny.
function key(id, parts) {
    split(id, parts, "/")
    parts[4] = tiny == "tiny" ? "" : parts[4]
    return parts[1] "/" parts[3] "/" parts[4] "/" parts[5] "/" parts[6] "/" parts[7]
}
function is_gpu(id) { return id ~ /^[a-z_0-9]*\/(cuda|rocm)\// }

FILENAME ~ /steps.tsv$/ {
    if (FNR == 1) print "\n## Steps\n\n| step | seconds | |\n| --- | ---: | --- |"
    print "| " $1 " | " $2 " | " $3 " |"
}
FILENAME ~ /measured.tsv$/ && is_gpu($1) && $2 == "bowstring" { ours[key($1)] = $3 / 1e9 }
FILENAME ~ /peers.tsv$/ && is_gpu($1) && $2 !~ /-wall$/ {
    k = key($1)
    if (!(k in best) || $3 < best[k]) { best[k] = $3; who[k] = $2 }
}
FILENAME ~ /predictions.tsv$/ && FNR == 1 {
    print "\n## Predictions, for an H200, and what was measured here\n"
    if (scale != 1) printf "This is no H200: predictions times %.2f, for a copy moves %.0f GB/s here and 4300 there.\n\n", scale, copy
    print "*ratio*: measured over predicted. *peer*: the fastest, and its time over ours.\n"
    print "| work | rows | predicted | from | to | measured | ratio | | peer |"
    print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |"
}
FILENAME ~ /predictions.tsv$/ && FNR > 1 {
    for (i = 5; i <= 7; i++) $i *= scale
    k = key($2)
    found = $2 != "-" && (k in ours) ? ours[k] : ""
    verdict = $2 == "-" ? "no bench" : "not measured"
    ratio = peer = "-"
    if (found != "") {
        measured++
        ratio = sprintf("%.2f", found / $5)
        verdict = found < $6 ? "faster" : found > $7 ? "**slower**" : "as predicted"
        if (tiny == "tiny") verdict = "tiny"
        if (k in best) peer = who[k] ", " sprintf("%.2f", best[k] / found)
    }
    all++
    print "| " $1 " | " $3 " | " time($5) " | " time($6) " | " time($7) " | " time(found) " | " ratio " | " verdict " | " peer " |"
}
END { print "\n" measured + 0 " of " all " predictions were measured." }
