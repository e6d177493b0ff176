# Reads lines "way call bytes us". Prints for each call and size the median of each way and the ratio of the second way
# to the first; then the geometric means of these ratios, by call and over all.
#
#   awk -v title=TEXT -v ways="openmpi memory messages" -f ratios.awk TIMES

function median(text,   v, k, i, j, t) {
  k = split(text, v, " ")
  for (i = 2; i <= k; ++i) for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; --j) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
  return v[int((k + 1) / 2)]
}

{
  key = $2 " " $3
  if (!(key in seen)) { seen[key] = 1; keys[++n] = key }
  times[$1, key] = times[$1, key] " " $4
}

END {
  count = split(ways, way, " ")
  printf "%s\n%-24s %10s %10s %10s %8s", title, "call", "bytes", way[1], way[2], "ratio"
  for (w = 3; w <= count; ++w) printf " %8s", way[w]
  printf "\n"
  for (i = 1; i <= n; ++i) {
    split(keys[i], call, " ")
    if (times[way[1], keys[i]] == "" || times[way[2], keys[i]] == "") { left_out = left_out " " keys[i]; continue }
    first = median(times[way[1], keys[i]]); second = median(times[way[2], keys[i]])
    printf "%-24s %10d %10.2f %10.2f %8.2f", call[1], call[2], first, second, second / first
    for (w = 3; w <= count; ++w) printf " %8.2f", median(times[way[w], keys[i]])
    printf "\n"
    logs[call[1]] += log(second / first); counts[call[1]]++
    all += log(second / first); ++compared
  }
  for (c in logs) printf "%-24s geometric mean of the ratios %.2f\n", c, exp(logs[c] / counts[c])
  if (compared > 0) printf "%-24s geometric mean of the ratios %.2f\n", "all", exp(all / compared)
  if (left_out != "") print "left out, because a way has no time:" left_out
}
