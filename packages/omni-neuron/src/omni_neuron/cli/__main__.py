import sys

from omni_neuron.cli.main import main

sys.exit(main())
