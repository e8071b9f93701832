package env

import (
	"context"
	"errors"
	"time"
)

// CloseTimeout bounds the removal of an environment. A cluster needs time to delete a namespace.
const CloseTimeout = 3 * time.Minute

// closer is anything that has to be removed after use.
type closer interface {
	Close(ctx context.Context) error
}

// Close closes c within CloseTimeout, even after ctx has ended. It returns err joined with the error of closing.
func Close(ctx context.Context, c closer, err error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), CloseTimeout)
	defer stop()
	return errors.Join(err, c.Close(ctx))
}
