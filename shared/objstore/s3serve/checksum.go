package s3serve

import (
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3api/middlewares"
	"github.com/versity/versitygw/s3api/utils"
)

// sums are the checksums that a client sent, by algorithm.
type sums map[types.ChecksumAlgorithm]*string

// answers are the fields of an answer that carry a checksum, by algorithm.
type answers map[types.ChecksumAlgorithm]**string

// checkedBody is a body that fails at its end when it is not what its checksum
// says. The gateway checks the signature and the checksum in a trailer itself.
type checkedBody struct {
	io.Reader
	algorithm types.ChecksumAlgorithm // "" where the client asked for none
	sum       func() string
}

// checked is body under the checksum given with it; where there is none, the
// sum of algorithm want is computed for the answer.
func checked(body io.Reader, given sums, want types.ChecksumAlgorithm) (*checkedBody, error) {
	if body == nil {
		body = strings.NewReader("")
	}
	if trailer, ok := body.(middlewares.ChecksumReader); ok && trailer.Algorithm() != "" {
		return &checkedBody{body, types.ChecksumAlgorithm(strings.ToUpper(trailer.Algorithm())), trailer.Checksum}, nil
	}
	expected := ""
	for algorithm, sum := range given {
		if sum != nil {
			want, expected = algorithm, *sum
		}
	}
	if want == "" {
		return &checkedBody{Reader: body}, nil
	}
	r, err := utils.NewHashReader(body, expected, utils.HashType(strings.ToLower(string(want))))
	if err != nil {
		return nil, err
	}
	return &checkedBody{r, want, r.Sum}, nil
}

// answer sets the field of the body's checksum, once it is read.
func (b *checkedBody) answer(fields answers) {
	if field, ok := fields[b.algorithm]; ok {
		*field = ptr(b.sum())
	}
}
