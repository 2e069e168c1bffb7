// What the gateway's round trips cost without the gateway: one request to Redis, an object that writes the call down
// before it is dispatched and after it, and the upstream. Nothing is checked, read or counted.
import { DurableObject } from 'cloudflare:workers'

const RECORD = 'r'.repeat(700)

export class Ledger extends DurableObject {
  constructor(context, environment) {
    super(context, environment)
    context.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS open_calls (id TEXT PRIMARY KEY, record TEXT) WITHOUT ROWID;
       CREATE TABLE IF NOT EXISTS closed_calls (sequence INTEGER PRIMARY KEY, id TEXT, record TEXT);`,
    )
  }

  async open(id, record) {
    this.ctx.storage.sql.exec('INSERT INTO open_calls VALUES (?, ?)', id, record)
    return { admitted: true }
  }

  async close(id, record) {
    const { storage } = this.ctx
    storage.transactionSync(() => {
      storage.sql.exec('DELETE FROM open_calls WHERE id = ?', id)
      storage.sql.exec('INSERT INTO closed_calls (id, record) VALUES (?, ?)', id, record)
    })
    return { closed: true }
  }
}

async function askRedis({ REDIS, REDIS_TOKEN }) {
  const response = await fetch(`${REDIS}/pipeline`, {
    method: 'POST',
    headers: { authorization: `Bearer ${REDIS_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify([['MGET', 'epoch:one', 'epoch:two']]),
  })
  await response.json()
}

const proxy = {
  async fetch(request, environment, context) {
    const { pathname, search } = new URL(request.url)
    const body = await request.arrayBuffer()
    await askRedis(environment)
    const ledger = environment.LEDGER.getByName('bench')
    const id = crypto.randomUUID()
    await ledger.open(id, RECORD)
    const { method, headers } = request
    const response = await fetch(environment.UPSTREAM + pathname + search, { method, headers, body })
    context.waitUntil(ledger.close(id, RECORD))
    return response
  },
}

// biome-ignore lint/style/noDefaultExport: the runtime takes a Worker's handlers from its default export
export default proxy
