package names

// maxDistance is how many bytes of each word Distance looks at.
const maxDistance = 64

// Distance returns how many bytes have to be put in, taken out or replaced to make one word of another
// (Levenshtein's distance), of which only the first 64 bytes count. It finds what somebody may have meant.
func Distance(a, b string) int {
	a, b = a[:min(len(a), maxDistance)], b[:min(len(b), maxDistance)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
