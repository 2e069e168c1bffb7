import { defaultRetention } from '../../../admin/retention/retention-periods.ts'
import { readRetention, replaceRetention } from '../../../admin/retention/retention-settings.ts'
import type { RetentionSettings } from '../../../wire/retention.ts'
import type { AppContext } from '../../context.ts'
import type { HandlersOf } from './mount-endpoints.ts'

const present = (context: AppContext, settings: RetentionSettings) => ({
  ...settings,
  defaults: defaultRetention(context.var.deps.configuration),
})

export const retentionHandlers: HandlersOf<'retention'> = {
  'retention.show': async ({ context, scope }) => present(context, await readRetention(scope)),
  'retention.replace': async ({ context, scope, body }) =>
    present(context, await replaceRetention(scope, body)),
}
