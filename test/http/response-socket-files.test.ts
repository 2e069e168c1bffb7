import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { openResponseSocket, type ResponseSocket, type SocketEvent } from '../harness/response-socket.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { workspaceCaller } from '../harness/workspaces.ts'
import { callTool, type Part, say } from './support/dlp-answers.ts'
import type { Json } from './support/response-calls.ts'
import { turnsScript } from './support/response-streams.ts'

// Responses that are not stored have no conversation. On a connection, each passes its files to the one that continues it.

const MODEL = 'scripted-chat'
const NONE = 'There are no files.'
let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const connect = () => openResponseSocket(gateway(), tenant.key)

interface Ended {
  id: string
  status: string
  output: Array<Json & { type: string; output?: unknown }>
}

/** A response in which the model calls tools. @throws unless it ends. */
async function respond(socket: ResponseSocket, parts: readonly Part[], more: Json = {}): Promise<Ended> {
  const script = await turnsScript('chat', [parts, [say('Done.')]])
  const input = [{ role: 'user', content: script }]
  return endOf(await socket.create({ model: MODEL, store: false, input, ...more }))
}

function endOf(events: readonly SocketEvent[]): Ended {
  const last = events.at(-1)
  if (!last?.response) throw new Error(JSON.stringify(last))
  return last.response as unknown as Ended
}

const write = (path: string) => callTool('write_file', { path, content: path })
const LIST = callTool('list_files', {})
const listed = ({ output }: Ended) => output.find(({ type }) => type === 'service_call')?.output

/** The files of a workspace, as a tool of its owner lists them. */
const filesOf = async (workspaceId: string) => {
  const { organizationId, userId } = tenant
  const caller = workspaceCaller(gateway().toolsUrl, { organizationId, userId, workspaceId })
  return (await caller.call('list_files', {})).members.output
}
/** Longer than a busy machine takes. */
const WAIT = { timeout: 10_000 }

const untilNone = (workspaceId: string) =>
  vi.waitFor(async () => expect(await filesOf(workspaceId)).toBe(NONE), WAIT)

describe('the files of responses that are not stored', () => {
  it('last from one to the next that continues it, and are deleted with the connection', async () => {
    const socket = await connect()
    const first = await respond(socket, [write('a')])
    const second = await respond(socket, [write('b')], { previous_response_id: first.id })
    const third = await respond(socket, [LIST], { previous_response_id: second.id })
    expect(listed(third)).toBe('/workspace/a 1\n/workspace/b 1')
    expect(await filesOf(first.id)).toBe('/workspace/a 1\n/workspace/b 1')
    socket.close()
    await untilNone(first.id)
  })

  it('are not there for another chain of the connection, which ends the one before', async () => {
    const socket = await connect()
    const first = await respond(socket, [write('a')])
    const other = await respond(socket, [LIST])
    expect(listed(other)).toBe(NONE)
    await untilNone(first.id)
    const last = await respond(socket, [LIST], { previous_response_id: other.id })
    expect(listed(last)).toBe(NONE)
    socket.close()
  })

  it('are deleted when a continuation fails', async () => {
    const socket = await connect()
    const first = await respond(socket, [write('a')])
    const refused = await socket.create({
      ...{ model: 'no-such-model', store: false, input: 'x', previous_response_id: first.id },
    })
    expect(refused).toMatchObject([{ type: 'error' }])
    await untilNone(first.id)
    socket.close()
  })

  it('are deleted when a continuation fails in the middle', async () => {
    const socket = await connect()
    const first = await respond(socket, [write('a')])
    const failed = await respond(socket, [], {
      ...{ previous_response_id: first.id, input: 'script:mid-stream-cut' },
    })
    expect(failed.status).toBe('failed')
    await untilNone(first.id)
    socket.close()
  })

  it('last for a response that runs on after its client has left, until its end', async () => {
    const socket = await connect()
    const first = await respond(socket, [write('a')])
    const script = await turnsScript('chat', [[write('b')], [LIST], [say('Done.')]])
    const input = [{ role: 'user', content: script }]
    socket.send({
      ...{ type: 'response.create', model: MODEL, store: false, input, previous_response_id: first.id },
    })
    let id = ''
    while (id === '') id = (await socket.next()).response?.id ?? ''
    socket.close()
    const ended = await vi.waitFor(async () => {
      const answer = await fetch(`${gateway().baseUrl}/v1/responses/${id}`, {
        headers: { authorization: `Bearer ${tenant.key}` },
      })
      const response = (await answer.json()) as Ended
      expect(response.status).toBe('completed')
      return response
    }, WAIT)
    expect(ended.output.map(({ output }) => output)).toContain('/workspace/a 1\n/workspace/b 1')
    await untilNone(first.id)
  })

  it('are not those of a stored response that continues: its conversation has its own', async () => {
    const socket = await connect()
    const first = await respond(socket, [write('a')])
    const stored = await respond(socket, [LIST, write('c')], {
      previous_response_id: first.id,
      store: true,
    })
    expect(listed(stored)).toBe(NONE)
    await untilNone(first.id)
    socket.close()
  })
})
