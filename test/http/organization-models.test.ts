import { beforeAll, describe, expect, it } from 'vitest'
import { signedInBrowser } from '../harness/console-browser.ts'
import { gateway } from '../harness/gateway.ts'
import { addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'

interface ListedModel {
  id: string
  routes?: unknown
  granted_by: Array<{ subject_type: string; subject_id: string; name: string | null; model_id: string }>
}

let tenant: Tenant
let ada: string
let groupId: string
const api = () => administrator(gateway())
const grant = (subject: object, modelId: string) =>
  api().ask('POST', `${tenant.base}/grants`, { ...subject, model_id: modelId })

beforeAll(async () => {
  tenant = await createTenant(gateway(), { models: [] })
  ada = await addMember(gateway(), tenant.base, { name: 'Ada' })
  groupId = (await api().ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'analysts' })).id
  await api().ask('PUT', `${tenant.base}/groups/${groupId}/members/${ada}`)
  await grant({ subject_type: 'group', subject_id: groupId }, 'scripted-chat')
  await grant({ subject_type: 'user', subject_id: ada }, 'scripted-chat')
  await grant({ subject_type: 'user', subject_id: tenant.userId }, 'scripted-messages')
})

/** All pages. Other tests make models meanwhile, for every organization. */
async function list(path: string, ask = api().ask, limit = 200): Promise<ListedModel[]> {
  const models: ListedModel[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const query: string = `limit=${limit}${path}${cursor && `&cursor=${cursor}`}`
    const page: { data: ListedModel[]; next_cursor: string | null } = await ask(
      'GET',
      `${tenant.base}/models?${query}`,
    )
    models.push(...page.data)
    cursor = page.next_cursor
  }
  return models
}

const idsOf = (models: ListedModel[]) => models.map(({ id }) => id)

describe('the models of an organization', () => {
  it('are for a member those that it may use, with the rights that give them', async () => {
    const browser = await signedInBrowser(gateway(), tenant.base, ada)
    const models = await list('', browser.ask.bind(browser))
    expect(models.map(({ id }) => id)).toEqual(['scripted-chat'])
    const [model] = models
    expect(model).not.toHaveProperty('routes')
    expect(model?.granted_by).toMatchObject([
      { subject_type: 'group', subject_id: groupId, name: 'analysts' },
      { subject_type: 'user', subject_id: ada, name: 'Ada' },
    ])
    expect(await list(`&user_id=${ada}`, browser.ask.bind(browser))).toEqual(models)
    const others = `${tenant.base}/models?user_id=${tenant.userId}`
    expect((await browser.call('GET', others)).status).toBe(404)
    expect(await list(`&user_id=${ada}`)).toEqual(models)
  })

  it('are for administrators all that calls can reach', async () => {
    const models = await list('')
    const rights = Object.fromEntries(models.map(({ id, granted_by: by }) => [id, by.length]))
    expect(rights).toMatchObject({ 'scripted-chat': 2, 'scripted-messages': 1 })
    const ids = idsOf(models)
    expect(ids).toEqual([...new Set(ids)].sort())
    const paged = idsOf(await list('', api().ask, 7))
    expect(paged.filter((id) => ids.includes(id))).toEqual(ids.filter((id) => paged.includes(id)))
    expect(paged).toContain('scripted-chat')
  })

  it('are all for a user with a right to every model', async () => {
    const all = await list('')
    await grant({ subject_type: 'role', subject_id: 'admin' }, '*')
    const admin = await addMember(gateway(), tenant.base, { role: 'admin' })
    const models = await list(`&user_id=${admin}`)
    expect(idsOf(models)).toEqual(expect.arrayContaining(idsOf(all)))
    for (const { granted_by: by } of models) expect(by).toMatchObject([{ model_id: '*', name: null }])
  })
})
