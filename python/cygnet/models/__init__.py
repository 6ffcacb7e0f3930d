from cygnet.blas_threads import import_numpy

import_numpy()
