import { LIST_PRICES, PRICES_READ } from '../list-prices.ts'
import { section, table, verdict } from '../markdown.ts'
import type { Operations } from './counting-system.ts'
import { type CallCost, type CostFigures, dollarsOfCall } from './section.ts'

const OPERATIONS: ReadonlyArray<[head: string, name: Exclude<keyof Operations, 'rowsByTable'>]> = [
  ['Worker requests', 'workerRequests'],
  ['CPU, ms', 'workerCpu'],
  ['object requests', 'objectRequests'],
  ['alarms', 'objectAlarms'],
  ['object seconds', 'objectSeconds'],
  ['rows written', 'objectRowsWritten'],
  ['rows read', 'objectRowsRead'],
  ['R2 A', 'bucketWrites'],
  ['R2 B', 'bucketReads'],
  ['queue messages', 'queueMessages'],
  ['Redis commands', 'redisCommands'],
  ['Postgres statements', 'postgresStatements'],
  ['bytes sent', 'postgresSent'],
  ['received', 'postgresReceived'],
  ['model', 'modelRequests'],
]
const PARTS = ['worker', 'requests', 'duration', 'rows', 'bucket', 'queue', 'postgres', 'all'] as const
const MILLION = 1_000_000
/** A table with fewer rows of a call is left out. */
const LEAST_ROWS = 0.02

/** The operations of a call of each kind, and what a million calls cost, as Markdown. */
export function renderCosts(costs: CostFigures): string {
  const sources = [...new Set(Object.values(LIST_PRICES).map(({ source }) => source))].join(', ')
  return section(
    'What a call takes and costs',
    table(
      ['call', 'at a time', ...OPERATIONS.map(([head]) => head)],
      costs.map(({ kind, atOnce, operations }) => [
        kind,
        String(atOnce),
        ...OPERATIONS.map(([, name]) => figure(operations[name])),
      ]),
    ),
    table(['$ per million calls', 'at a time', ...PARTS, 'aim'], costs.map(pricedRow)),
    table(
      ['rows of a call', 'at a time', 'by table'],
      costs.map(({ kind, atOnce, operations }) => [kind, String(atOnce), rowsByTable(operations)]),
    ),
    `List prices beyond what plans include, read on ${PRICES_READ}: ${sources}. Postgres: bytes of its answers, without its computing and storage. Without the model. CPU is that of the ` +
      'whole process, of which objects are billed by the seconds in which they have work, and not by their CPU. Calls of objects ' +
      'and alarms are requests. Queue: with Redis.',
  )
}

function pricedRow({ kind, atOnce, operations, mostDollars }: CallCost): string[] {
  const dollars = dollarsOfCall(operations)
  const all = dollars.all * MILLION
  const aim = mostDollars === null ? '' : `at most ${mostDollars}: ${verdict(all <= mostDollars)}`
  return [kind, String(atOnce), ...PARTS.map((part) => figure(dollars[part] * MILLION)), aim]
}

/** The largest first. */
function rowsByTable({ rowsByTable }: Operations): string {
  const tables = Object.entries(rowsByTable).filter(([, rows]) => rows >= LEAST_ROWS)
  tables.sort(([, one], [, other]) => other - one)
  return tables.map(([name, rows]) => `${name} ${figure(rows)}`).join(', ')
}

const figure = (value: number): string => String(Number(value.toPrecision(3)))
