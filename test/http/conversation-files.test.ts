import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { addKey, addMember, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerAnswers } from '../harness/upstream.ts'
import { type WorkspaceCaller, workspaceCaller } from '../harness/workspaces.ts'
import { callTool, framesOf, say } from './support/dlp-answers.ts'
import { ask, createResponse, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'
import { turnsScript } from './support/response-streams.ts'

interface FileList {
  object: string
  data: Array<{ object: string; path: string; bytes: number; modified_at: number }>
  has_more: boolean
}

let tenant: Tenant
let conversationId: string
let path: string
let files: WorkspaceCaller

beforeAll(async () => {
  tenant = await createTenant(gateway())
  conversationId = (await createResponse(tenant.key, {})).conversation?.id ?? ''
  path = `/v1/conversations/${conversationId}/files`
  files = workspaceCaller(gateway().toolsUrl, {
    organizationId: tenant.organizationId,
    userId: tenant.userId,
    workspaceId: conversationId,
  })
})

describe('the files of a conversation', () => {
  it('are an empty list without any', async () => {
    expect(expectJson(await ask(tenant.key, 'GET', path))).toEqual({
      object: 'list',
      data: [],
      has_more: false,
    })
  })

  it('are listed and downloaded by their owner', async () => {
    const names = ['report.html', 'dir/ü "x" (1).txt', 'a%2Fb?c#d']
    for (const name of names) await files.call('write_file', { path: name, content: `<b>${name}</b>` })
    await files.shell('echo hidden > /tmp/other')
    const list = expectJson<FileList>(await ask(tenant.key, 'GET', path))
    expect(list.data.map((file) => file.path).sort()).toEqual([...names].sort())
    expect(list.data[0]).toMatchObject({ object: 'conversation.file', bytes: expect.any(Number) })
    expect(Math.abs((list.data[0]?.modified_at ?? 0) - Date.now() / 1_000)).toBeLessThan(600)
    for (const name of names) {
      const url = `${path}/${name.split('/').map(encodeURIComponent).join('/')}`
      const answer = await ask(tenant.key, 'GET', url)
      expect([name, answer.status, answer.text]).toEqual([name, 200, `<b>${name}</b>`])
      expect(answer.headers['content-type']).toBe('application/octet-stream')
      expect(answer.headers['content-disposition']).toMatch(/^attachment; filename\*=UTF-8''[\w.%-]+$/)
      expect(answer.headers['x-content-type-options']).toBe('nosniff')
      expect(answer.headers['content-security-policy']).toContain('sandbox')
    }
  })

  it('are not there for others, nor outside of the folder', async () => {
    await files.call('write_file', { path: 'secret.txt', content: 'secret' })
    await files.shell(
      'echo x > /tmp/outside; ln -s /tmp ../workspace/link; ln -s self self; ln -s b a; ln -s a b; ln -s gone dangling',
    )
    const others = [(await createTenant(gateway())).key, await addKeyOfMember()]
    for (const key of others) {
      for (const url of [path, `${path}/secret.txt`]) expect((await ask(key, 'GET', url)).status).toBe(404)
    }
    const escapes = [
      '..%2ftmp%2foutside',
      '%2e%2e%2ftmp%2foutside',
      'x%2f..%2f..%2ftmp%2foutside',
      '%00',
      'a%00b',
      '%ff',
      'dir',
      'nope',
      'self',
      'self/inside',
      'a',
      'dangling',
      'secret.txt/inside',
      'x'.repeat(5_000),
    ]
    for (const name of escapes) {
      expect([name, (await ask(tenant.key, 'GET', `${path}/${name}`)).status]).toEqual([name, 404])
    }
    expect((await ask(tenant.key, 'GET', path)).status).toBe(200)
    expect((await ask(tenant.key, 'GET', '/v1/conversations/conv_0000000000000000000000/files')).status).toBe(
      404,
    )
  })
})

/** Another user of the same organization. */
async function addKeyOfMember(): Promise<string> {
  const member = await addMember(gateway(), tenant.base)
  return (await addKey(gateway(), tenant.base, member)).key
}

const write = (path: string) => callTool('write_file', { path, content: path })
/** A response whose model writes a file. */
const writing = async (body: Json): Promise<ToldResponse> =>
  createResponse(tenant.key, { input: await turnsScript('chat', [[write('x')], [say('Done.')]]), ...body })
/** The files of a workspace, as a tool of its owner lists them. */
const filesOf = async (workspaceId: string) => {
  const { organizationId, userId } = tenant
  const own = workspaceCaller(gateway().toolsUrl, { organizationId, userId, workspaceId })
  return (await own.call('list_files', {})).members.output
}
const remove = async (id: string) =>
  expect((await ask(tenant.key, 'DELETE', `/v1/responses/${id}`)).status).toBe(200)

describe('files are deleted', () => {
  it('with a response without a conversation, when it has ended', async () => {
    const script = await turnsScript('chat', [
      [write('x')],
      [callTool('list_files', {})],
      [callTool('read_file', { path: 'x' })],
      [say('Done.')],
    ])
    const response = await createResponse(tenant.key, { input: script, store: false })
    expect(response.output.map(({ output }) => output)).toContain('/workspace/x 1')
    await vi.waitFor(async () => expect(await filesOf(response.id)).toBe('There are no files.'))
  })

  it('with the last response of a conversation that is deleted', async () => {
    const first = await writing({})
    const conversation = first.conversation?.id ?? ''
    const second = await createResponse(tenant.key, { conversation, input: 'More' })
    await remove(first.id)
    expect(await filesOf(conversation)).toBe('/workspace/x 1')
    await remove(second.id)
    expect(await filesOf(conversation)).toBe('There are no files.')
    expect(expectJson(await ask(tenant.key, 'GET', `/v1/conversations/${conversation}/files`))).toMatchObject(
      {
        data: [],
      },
    )
    await writing({ conversation })
    expect(await filesOf(conversation)).toBe('/workspace/x 1')
  })

  it('with a running response that is the only one of its conversation', async () => {
    const signal = uniqueName('signal')
    const input = await registerAnswers(gateway(), [
      { steps: [{ sse: framesOf('chat', [write('x')]) }] },
      { steps: [{ waitForSignal: signal }] },
    ])
    const running = await createResponse(tenant.key, { input, background: true })
    const conversation = running.conversation?.id ?? ''
    await vi.waitFor(async () => expect(await filesOf(conversation)).toBe('/workspace/x 1'))
    await remove(running.id)
    expect(await filesOf(conversation)).toBe('There are no files.')
    await upstreamControl(gateway()).release(signal)
  })

  it('and not those of a conversation whose fork is deleted', async () => {
    const source = await writing({})
    const next = await createResponse(tenant.key, { previous_response_id: source.id, input: 'One' })
    const fork = await createResponse(tenant.key, { previous_response_id: source.id, input: 'Two' })
    expect(fork.conversation?.id).not.toBe(next.conversation?.id)
    await remove(fork.id)
    expect(await filesOf(source.conversation?.id ?? '')).toBe('/workspace/x 1')
  })
})
