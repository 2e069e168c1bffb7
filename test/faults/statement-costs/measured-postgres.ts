import pg from 'pg'
import { listenOnLoopback, readBody, sendJson } from '../../../scripts/node/loopback-server.ts'
import { type PostgresBackend, toParameterText } from '../../../scripts/node/postgres/backend.ts'
import { answerSql } from '../../../scripts/node/postgres/sql-over-http.ts'

/** An execution of a statement that the gateway sent. */
export interface Execution {
  /** Its text; lists of parameters have one form, whatever their length. */
  text: string
  /** Blocks of tables, indexes and temporary files that it read or wrote, those of triggers and nested statements included. */
  blocks: number
  /** Rows that it returned or changed, and the bytes of those that it returned and of its parameters. */
  rows: number
  bytes: number
  plan: unknown
}

export interface MeasuredPostgres {
  /** Endpoint for DATABASE_FETCH_ENDPOINT. */
  endpoint: string
  /** Statements executed since the last call. */
  take(): Execution[]
  /** Acts while nothing of the gateway reaches the database: requests that have begun end before, later ones are refused. */
  without(act: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

/** PostgreSQL reports the plan of each statement as a notice on the connection that runs it. */
const SETTINGS = [
  'session_preload_libraries=auto_explain',
  'auto_explain.log_min_duration=0',
  'auto_explain.log_analyze=on',
  'auto_explain.log_buffers=on',
  'auto_explain.log_timing=off',
  'auto_explain.log_nested_statements=on',
  'auto_explain.log_format=json',
  'auto_explain.log_level=notice',
  'client_min_messages=notice',
  'jit=off',
]

const REQUEST_LIMIT = 64 * 1024 * 1024
const POOL_SIZE = 20

/**
 * A front of a real PostgreSQL that speaks Neon's SQL over HTTP, and measures each statement.
 * @param url of the server. @param settings of its sessions; without any, nothing is measured.
 */
export async function startMeasuredPostgres(
  url: string,
  settings: readonly string[] = SETTINGS,
): Promise<MeasuredPostgres> {
  let executions: Execution[] = []
  const pool = new pg.Pool({
    connectionString: url,
    max: POOL_SIZE,
    options: settings.map((setting) => `-c ${setting}`).join(' '),
    types: { getTypeParser: () => (value: string) => value } as never,
  })
  pool.on('error', () => {})
  const backend = measuringBackend(pool, (execution) => executions.push(execution))
  let isAway = false
  const begun = new Set<Promise<unknown>>()
  const server = await listenOnLoopback(0, async (request, response) => {
    const body = await readBody(request, REQUEST_LIMIT)
    if (isAway) return sendJson(response, 503, { message: 'The database is away.' })
    const answering = answerSql(backend, request.headers, body)
    begun.add(answering)
    const answer = await answering.finally(() => begun.delete(answering))
    sendJson(response, answer.status, answer.body)
  })
  return {
    endpoint: `${server.url}/sql`,
    take: () => {
      const taken = executions
      executions = []
      return taken
    },
    without: async (act) => {
      isAway = true
      await Promise.allSettled(begun)
      await act().finally(() => {
        isAway = false
      })
    },
    close: async () => {
      await server.close()
      await pool.end()
    },
  }
}

/** A statement that was sent. Within a transaction its plan comes with the statement after it. */
interface Sent {
  text: string
  blocks: number
  rows: number
  bytes: number
  plan: PlanNode | null
}

function measuringBackend(pool: pg.Pool, report: (execution: Execution) => void): PostgresBackend {
  return {
    async openSession() {
      const client = await pool.connect()
      const sent: Sent[] = []
      const take = ({ message = '' }: { message?: string | undefined }) => {
        const at = message.indexOf('plan:\n')
        if (at < 0) return
        const { Plan: plan, 'Query Text': text } = JSON.parse(message.slice(at + 6)) as Explained
        const own = sent.find((each) => each.plan === null && each.text === text)
        // A plan without a statement is that of a trigger, such as a foreign key's, or of a function.
        const of = own ?? sent.at(-1)
        if (own) own.plan = plan
        if (of) of.blocks += blocksOf(plan)
      }
      client.on('notice', take)
      return {
        async query(text, parameters) {
          const own: Sent = { text, blocks: 0, rows: 0, bytes: 0, plan: null }
          sent.push(own)
          const { fields, rows, command, rowCount } = (await client.query({
            text,
            values: parameters.map(toParameterText),
            rowMode: 'array',
            queryMode: 'extended',
          } as pg.QueryArrayConfig)) as pg.QueryArrayResult<(string | null)[]>
          own.rows = rowCount ?? 0
          const values = [...rows.flat(), ...parameters.map(toParameterText)]
          own.bytes = values.reduce((sum, value) => sum + (value?.length ?? 0), 0)
          return { fields, rows, command, rowCount }
        },
        end: async () => {
          client.off('notice', take)
          client.release()
          // Statements without a plan read no table, as BEGIN, or failed.
          for (const { plan, text, ...counts } of sent)
            if (plan !== null) report({ ...counts, plan, text: textOf(text) })
        },
      }
    },
    close: () => pool.end(),
  }
}

interface Explained {
  'Query Text': string
  Plan: PlanNode
}

interface PlanNode {
  Plans?: PlanNode[]
  [member: string]: unknown
}

const BLOCKS = [
  'Shared Hit Blocks',
  'Shared Read Blocks',
  'Local Hit Blocks',
  'Local Read Blocks',
  'Temp Read Blocks',
  'Temp Written Blocks',
]

const ownBlocks = (node: PlanNode): number => BLOCKS.reduce((sum, name) => sum + Number(node[name] ?? 0), 0)

/** A node's count includes those below it, but for changes within a WITH, which run by themselves. */
const blocksOf = (plan: PlanNode): number => ownBlocks(plan) + changesBelow(plan)

const changesBelow = (node: PlanNode): number =>
  (node.Plans ?? []).reduce((sum, child) => {
    const isChange = child['Node Type'] === 'ModifyTable' && child['Parent Relationship'] === 'InitPlan'
    return sum + (isChange ? ownBlocks(child) : 0) + changesBelow(child)
  }, 0)

/** Normalizes a statement: lists of any length have the same text, and so have filters with as many conditions. */
const textOf = (text: string): string =>
  text
    .replace(/\$\d+/g, '?')
    .replace(
      /\((?:\?|default)(?:, ?(?:\?|default))*\)(?:, ?\((?:\?|default)(?:, ?(?:\?|default))*\))*/g,
      '(?)',
    )
    .replace(/(?:WHEN \d+ THEN \?::text ?)+/g, 'WHEN ? ')
    .replace(/\s+/g, ' ')
    .trim()
