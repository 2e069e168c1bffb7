// Run as a process: node effects-upstream.ts <port> <file>
//
// An upstream with one tool that has effects, as MCP servers of both eras (`/mcp/modern`, `/mcp/legacy`) and as an operation of
// an API (`POST /pay`). A call writes its text to the file at once, and is answered a moment later: a process that is killed
// between has had the effect, and answers nothing.
import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { McpUpstream } from '../../../scripts/local/mcp-upstream/mcp-upstream.ts'
import { listenOnLoopback, readBody, sendJson } from '../../../scripts/node/loopback-server.ts'

const ANSWER_MS = 120
const MOST_BYTES = 1024 * 1024
const TOOL = {
  name: 'pay',
  description: 'Pays.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
}

interface Body {
  method?: string
  text?: string
  params?: { arguments?: { text?: string } }
}

const [port = '', file = ''] = process.argv.slice(2)
const servers = new McpUpstream()
for (const era of ['modern', 'legacy']) {
  const faults = { 'tools/call': { kind: 'slow', milliseconds: ANSWER_MS } }
  servers.control('PUT', era, Buffer.from(JSON.stringify({ era, tools: [TOOL], faults })))
}

await listenOnLoopback(Number(port), async (request, response) => {
  const body = await readBody(request, MOST_BYTES)
  const { method, text, params } = body.length === 0 ? {} : (JSON.parse(body.toString()) as Body)
  const effect = method === 'tools/call' ? params?.arguments?.text : text
  if (effect !== undefined) appendFileSync(file, `${effect}\n`)
  if (request.url !== '/pay') {
    return servers.handle((request.url ?? '').replace('/mcp/', ''), request, body, response)
  }
  await pause(ANSWER_MS)
  sendJson(response, 200, { paid: text })
})
process.stdout.write('ready\n')
