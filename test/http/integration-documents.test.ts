import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runAdmin } from '../../scripts/admin/run-admin.ts'
import { gateway } from '../harness/gateway.ts'
import { grantIntegration } from '../harness/integrations.ts'
import { createMcpTenant, listMcpTools } from '../harness/mcp.ts'
import { administrator, type Tenant, uniqueName } from '../harness/tenant.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-documents-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs a command line on the document of an API. */
async function add(tenant: Tenant, text: string, name = 'openapi.yaml') {
  const path = join(folder, `${uniqueName('document')}-${name}`)
  writeFileSync(path, text)
  const slug = uniqueName('api')
  const lines: string[] = []
  const words = ['integrations', 'add', slug, '--file', path, '--organization', tenant.organizationId]
  const code = await runAdmin(words, {
    environment: { HEADGATE_URL: gateway().baseUrl, ADMIN_TOKEN: gateway().adminToken },
    readInput: async () => '',
    print: () => {},
    complain: (line) => lines.push(line),
  })
  return { code, errors: lines.join('\n'), slug }
}

const DOCUMENT = `
openapi: 3.1.0
info: { title: Desk, version: "1" }
servers: [{ url: https://desk.example.com/v1 }]
paths:
  /tickets/{id}:
    get:
      operationId: getTicket
      summary: |
        Reads a ticket.
      parameters:
        - &id { name: id, in: path, required: true, schema: { type: string } }
      responses: { 200: { description: A ticket. } }
    delete:
      operationId: deleteTicket
      parameters: [*id]
      responses: { 204: { description: Deleted. } }
`

/** Ten anchors, each with ten times the one before: a gigabyte of JSON. */
const laughs = `openapi: 3.1.0
paths: {}
a0: &a0 [x, x, x, x, x, x, x, x, x, x]
${Array.from({ length: 9 }, (_, level) => `a${level + 1}: &a${level + 1} [${Array(10).fill(`*a${level}`)}]`).join('\n')}
`

const HOSTILE: Array<[name: string, text: string, error: RegExp]> = [
  ['anchors that multiply', laughs, /alias/i],
  ['an anchor that contains itself', `${DOCUMENT}\nx-self: &self { again: *self }`, /levels/],
  ['lists without end', `openapi: 3.1.0\nx: ${'['.repeat(100_000)}`, /not valid YAML/],
  ['many levels', `openapi: 3.1.0\nx: ${'['.repeat(300)}${']'.repeat(300)}`, /levels/],
  ['too many characters', `openapi: 3.1.0\nx: ${'y'.repeat(5_000_000)}`, /characters/],
  ['two documents', `${DOCUMENT}\n---\n${DOCUMENT}`, /not valid YAML/],
  ['a name twice', `${DOCUMENT}\npaths: {}`, /not valid YAML/],
  ['a list', '- openapi: 3.1.0', /does not hold an object/],
  ['nothing', '', /does not hold an object/],
  ['a number as its version', DOCUMENT.replace('3.1.0', '3.1'), /OpenAPI document of version/],
]

describe('the document of an API as a file', () => {
  it('is YAML or JSON', async () => {
    const tenant = await createMcpTenant(gateway())
    const { code, errors, slug } = await add(tenant, DOCUMENT)
    expect([code, errors]).toEqual([0, ''])
    await grantIntegration(gateway(), tenant, { integration: slug })
    const tools = (await listMcpTools(gateway(), tenant.key)).filter(({ name }) => name.startsWith(slug))
    expect(
      tools.map(({ name, inputSchema }) => [name, Object.keys(inputSchema.properties as object)]),
    ).toEqual([
      [`${slug}_deleteTicket`, ['id']],
      [`${slug}_getTicket`, ['id']],
    ])
    const paths = { '/a': { get: { operationId: 'a', responses: {} } } }
    const json = JSON.stringify({ openapi: '3.0.3', servers: [{ url: 'https://a.example.com' }], paths })
    expect((await add(tenant, json, 'openapi.json')).code).toBe(0)
  })

  it.each(HOSTILE)('with %s is refused, and nothing is added', async (_, text, error) => {
    const tenant = await createMcpTenant(gateway())
    const added = await add(tenant, text)
    expect(added.code).not.toBe(0)
    expect(added.errors).toMatch(error)
    expect(added.errors.length).toBeLessThan(1_000)
    const { data } = await administrator(gateway()).ask<{ data: unknown[] }>(
      'GET',
      `${tenant.base}/integrations`,
    )
    expect(data).toEqual([])
  })
})
