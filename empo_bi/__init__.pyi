# The front door: every public name, listed once. ``__init__.py`` reads this file and imports a name when it is first used.
import typing

from . import analysis as analysis
from . import errors as errors
from . import events as events
from . import goals as goals
from . import testing as testing
from . import worlds as worlds
from .advice.advise import advise as advise
from .batch.batch import run_batch as run_batch
from .compat import compute_human_policy_prior as compute_human_policy_prior
from .compat import compute_robot_policy as compute_robot_policy
from .dag.dag import Dag as Dag
from .memory.monitor import MemoryMonitor as MemoryMonitor
from .memory.profiler import MemoryProfiler as MemoryProfiler
from .planner.plan import plan as plan
from .problem.params import Params as Params
from .report.report import write_report as write_report
from .results.array_priors import ArrayPrior as ArrayPrior
from .results.array_priors import VectorPrior as VectorPrior
from .results.chain import compute_markov_chain_value_function as compute_markov_chain_value_function
from .results.occupancy import first_of as first_of
from .results.occupancy import probability_by_time as probability_by_time
from .results.policies import HumanPolicyPrior as HumanPolicyPrior
from .results.policies import RobotPolicy as RobotPolicy
from .results.shortest_paths import ShortestPathPrior as ShortestPathPrior
from .results.solution import Solution as Solution
from .solving.enumeration import enumerate_dag as enumerate_dag
from .solving.enumeration import open_dag as open_dag
from .solving.opening import open_solution as open_solution
from .solving.solve import solve as solve
from .world.array_world import ArrayWorld as ArrayWorld
from .world.gridworld import GridWorld as GridWorld
from .world.load import load_world as load_world
from .world.model import WorldModel as WorldModel
from .world.translation import from_multigrid as from_multigrid

__version__: str

def __getattr__(name: str) -> typing.Any: ...  # names of version 0.1, such as errors and goals
