import type { Bindings } from '../../src/env.ts'
import { ResponsePool } from '../../workers/response-pool.ts'

/** Rows that the objects of this class have written; setting an alarm writes one (Durable Objects, pricing). */
export const rowsWritten = { count: 0, byTable: new Map<string, number>() }

/** The name of the table that a statement writes. */
const tableOf = (statement: string): string =>
  /\b(?:INTO|UPDATE|FROM|TABLE)\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)/i.exec(statement)?.[1] ?? 'others'

function note(name: string, rows: number): void {
  rowsWritten.count += rows
  if (rows > 0) rowsWritten.byTable.set(name, (rowsWritten.byTable.get(name) ?? 0) + rows)
}

/** The object of many responses, which counts what it is billed for. */
export class CountingResponsePool extends ResponsePool {
  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, environment, {}, counting(context.storage))
  }
}

const counting = (storage: DurableObjectStorage): DurableObjectStorage =>
  new Proxy<DurableObjectStorage>(storage, {
    get: memberOf({
      sql: new Proxy(storage.sql, {
        get: memberOf({
          exec: (statement: string, ...bindings: unknown[]) => {
            const cursor = storage.sql.exec(statement, ...bindings)
            note(tableOf(statement), cursor.rowsWritten)
            return cursor
          },
        }),
      }),
      setAlarm: (time: number) => {
        note('setAlarm', 1)
        return storage.setAlarm(time)
      },
    }),
  })

/** The members of an object with some of them replaced. Those of the platform need their own `this`. */
const memberOf = (replaced: Record<string, unknown>) => (target: object, name: string | symbol) => {
  if (typeof name === 'string' && name in replaced) return replaced[name]
  const member = Reflect.get(target, name, target)
  return typeof member === 'function' ? member.bind(target) : member
}
