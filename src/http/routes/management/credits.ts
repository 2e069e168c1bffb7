import { Hono } from 'hono'
import { grantCredits, readCredits } from '../../../admin/credits.ts'
import { creditGrant } from '../../../wire/management.ts'
import { noQuery, pageQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope, pageRequest } from './request.ts'

const CREDITS = '/organizations/:organizationId/credits'

/** Amounts are micro-credits throughout. */
export const creditRoutes = new Hono<AppEnv>()
  .get(CREDITS, query(pageQuery), async (context) => {
    const page = pageRequest(context.req.valid('query'))
    const { balance, entries } = await readCredits(changeScope(context), page)
    return context.json({
      ...balance,
      ...listBody(entries, ({ id, kind, amount, reason, at }) => ({ id, kind, amount, reason, at })),
    })
  })
  .post(CREDITS, query(noQuery), jsonBody(creditGrant), async (context) => {
    const { amount, reason, id } = context.req.valid('json')
    const granted = await grantCredits(changeScope(context), { amount, reason, id })
    return context.json({ id: granted.id, amount, reason, ...granted.balance }, 201)
  })
