import { mebibytes, ms, section, table, times } from '../markdown.ts'
import type { ConcurrentFigures } from './concurrent-runs.ts'
import type { Operations } from './counting-system.ts'
import type { DispatchFigures, TurnFigures } from './dispatch.ts'
import type { OperationFigures } from './operations.ts'
import { costOf, PRICES, type PricedUnit } from './prices.ts'
import type { AgentsFigures } from './section.ts'

/** The section of agents as Markdown, without the parts that failed. */
export const renderAgents = ({ dispatch, concurrent, operations, failures }: AgentsFigures): string =>
  [
    dispatch && renderDispatch(dispatch),
    concurrent && renderConcurrent(concurrent),
    operations && renderOperations(operations),
    operations && dispatch && renderCost(operations, dispatch.runs),
    ...failures,
  ]
    .filter((part) => part !== null)
    .join('\n\n')

function renderDispatch({ direct, runs, turnsOfRun, sequences, atOnce }: DispatchFigures): string {
  const row = (name: string, of: (figures: TurnFigures) => number, show: (value: number) => string) => [
    name,
    show(of(direct)),
    show(of(runs)),
    times(of(runs) / of(direct)),
    show(of(runs) - of(direct)),
  ]
  const plain = (value: number) => value.toFixed(1)
  return section(
    'Agents: a turn as a step of a run',
    table(
      ['a turn', 'as `POST /v1/responses`', 'as a step', 'ratio', 'difference'],
      [
        row('time, one at a time', ({ alone }) => alone, ms),
        row(`turns a second, ${atOnce} sequences at once`, ({ turnsPerSecond }) => turnsPerSecond, plain),
        row('CPU of the gateway', ({ gatewayCpu }) => gatewayCpu, ms),
        row('CPU of Postgres, an emulation', ({ postgresCpu }) => postgresCpu, ms),
      ],
    ),
    `Sequences of ${turnsOfRun} turns in one conversation, ${sequences} of each kind for the times, in turn. The model answers at ` +
      'once. The time of a run is from its creation to its end, as its row has them.',
  )
}

function renderConcurrent(figures: ConcurrentFigures): string {
  const { runs, repeated, model, together, total, p50, p99, memory } = figures
  return section(
    `Agents: ${runs} runs at once`,
    table(
      ['', ''],
      [
        ['succeeded', String(runs)],
        ['triggers sent again', String(repeated)],
        ['most in progress together', String(together)],
        ['from the first trigger to the last end', ms(total)],
        ['from trigger to end, p50 and p99', `${ms(p50)}, ${ms(p99)}`],
        ['turns a second', ((runs * 1_000) / total).toFixed(1)],
        ['memory of the gateway before', mebibytes(memory.before)],
        ['its peak', memory.peak === null ? '' : mebibytes(memory.peak)],
      ],
    ),
    `Runs of one turn, for which the model takes ${model / 1_000} s. QStash delivers at most 100 messages at once.`,
  )
}

const NAMES: Record<keyof Operations, string> = {
  postgresRequests: 'requests to Postgres',
  postgresStatements: 'statements in them',
  redisRequests: 'requests to Redis',
  qstashMessages: 'messages to QStash',
  deliveries: 'deliveries of QStash',
  objectRequests: 'requests to Durable Objects',
  objectAlarms: 'alarms of Durable Objects',
  objectRows: 'rows written in Durable Objects',
  modelRequests: 'requests to the model',
}

const count = (value: number): string => String(Number(value.toFixed(2)))

function renderOperations({ first, further, direct, objects, runs }: OperationFigures): string {
  const rows = (Object.keys(NAMES) as Array<keyof Operations>).map((name) => [
    NAMES[name],
    count(direct[name]),
    count(further[name]),
    count(first[name]),
  ])
  const called = Object.entries(objects)
    .filter(([, each]) => each > 0.005)
    .sort(([, one], [, other]) => other - one)
  return section(
    'Agents: operations of a turn',
    table(['', 'turn as `POST /v1/responses`', 'further turn of a run', 'run of one turn'], rows),
    table(
      ['requests to Durable Objects', 'further turn of a run'],
      called.map(([name, each]) => [`\`${name}\``, count(each)]),
    ),
    `Counted over ${runs} runs of each length, one at a time, in which no call shares a commit of the ledger with another one. ` +
      'What the ledger and responses write later is included, and so are the watchdogs of deliveries.',
  )
}

/** Turns that the costs are for, and the model's time that they assume. */
const TURNS = 1_000
const MODEL_SECONDS = 10
/** Of an object, in gigabytes, as it is billed. */
const OBJECT_MEMORY = 0.128

function renderCost({ further }: OperationFigures, { gatewayCpu, postgresCpu }: TurnFigures): string {
  const amounts: Array<[name: string, unit: PricedUnit, amount: number]> = [
    ['messages to QStash', 'qstashMessages', further.qstashMessages],
    ['requests to Durable Objects, alarms', 'objectRequests', further.objectRequests + further.objectAlarms],
    ['rows written in Durable Objects', 'objectRows', further.objectRows],
    ['GB-seconds of the response’s object', 'objectDuration', MODEL_SECONDS * OBJECT_MEMORY],
    ['requests to the Worker', 'workerRequests', further.deliveries],
    ['CPU of the Worker, ms', 'workerCpu', gatewayCpu],
    ['commands to Redis', 'redisCommands', further.redisRequests],
    ['compute of Postgres, hours', 'postgresCompute', postgresCpu / 3_600_000],
  ]
  const total = amounts.reduce((sum, [, unit, amount]) => sum + costOf(unit, amount * TURNS), 0)
  const dollars = (value: number) => `$${value.toFixed(4)}`
  const rows = amounts.map(([name, unit, amount]) => {
    const { dollars: price, per } = PRICES[unit]
    const shown = amount >= 0.01 || amount === 0 ? count(amount) : amount.toExponential(1)
    return [name, shown, `$${price} for ${per.toLocaleString('en')}`, dollars(costOf(unit, amount * TURNS))]
  })
  return section(
    `Agents: cost of ${TURNS.toLocaleString('en')} further turns at list prices`,
    table(['', 'a turn', 'list price', 'cost'], [...rows, ['all', '', '', dollars(total)]]),
    `Beyond what plans include, without the model. It assumes ${MODEL_SECONDS} s of the model for a turn, in which the object of the ` +
      'response is billed; that of the ledger serves all calls and is left out. Neon bills the time that a compute is active: the ' +
      'figure is the processor time of the emulation, with a compute that has nothing idle to bill.',
    [...new Set(Object.values(PRICES).map(({ source, read }) => `- ${source}, read ${read}`))].join('\n'),
  )
}
