import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { addKey, addMember, createTenant, type Tenant } from '../harness/tenant.ts'
import { type WorkspaceCaller, workspaceCaller } from '../harness/workspaces.ts'
import { ask, createResponse, expectJson } from './support/response-calls.ts'

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
    await files.shell('echo x > /tmp/outside; ln -s /tmp ../workspace/link')
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
    ]
    for (const name of escapes) {
      expect([name, (await ask(tenant.key, 'GET', `${path}/${name}`)).status]).toEqual([name, 404])
    }
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

it('of a response without a conversation end with it', async () => {
  const response = await createResponse(tenant.key, { store: false })
  const { organizationId } = tenant
  const own = workspaceCaller(gateway().toolsUrl, { organizationId, workspaceId: response.id })
  await own.call('write_file', { path: 'x', content: 'x' })
  expect((await ask(tenant.key, 'DELETE', `/v1/responses/${response.id}`)).status).toBe(200)
  expect((await own.call('list_files', {})).members.output).toBe('There are no files.')
})
