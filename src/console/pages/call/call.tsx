import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { Refusal } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import {
  clockText,
  creditText,
  dayText,
  durationParts,
  idText,
  millisecondText,
  tokenText,
  zoneName,
} from '../../data/format.ts'
import { type Me, useSignedIn } from '../../data/me.ts'
import { LOOK_OF, statusText } from '../../data/outcomes.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { useZone } from '../../data/zone.ts'
import { Button } from '../../design/button.tsx'
import { Copyable, CopyButton } from '../../design/copyable.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Head, Page } from '../../design/page.tsx'
import { Columns, Facts, Section } from '../../design/section.tsx'
import { State } from '../../design/state.tsx'
import { Proof, WhoAndWhat } from './call-facts.tsx'
import type { ShownCall } from './call-record.ts'
import { curlText, playgroundSearch } from './copies.ts'
import { Cost } from './cost.tsx'
import { DataFlow } from './data-flow.tsx'
import { Neighbours } from './neighbours.tsx'
import { TEXT } from './text.ts'
import { Waterfall } from './waterfall.tsx'

const route = getRouteApi('/$slug/calls/$callId')

/** Milliseconds between looks at a call that has not ended. */
const LOOK_MS = 2_000

/** Why a call ended as it did, how long each part of it took, and how much it cost. */
export function CallPage() {
  const me = useSignedIn()
  const { slug, callId } = route.useParams()
  const search = route.useSearch()
  const path = { organizationId: me.organization.id, callId }
  const shown = useQuery({
    queryKey: ['call', path.organizationId, callId],
    queryFn: () => call('calls.show', { path }),
    retry: (count, error) => count < 2 && !isUnknown(error),
    refetchInterval: ({ state }) => (isUnknown(state.error) ? LOOK_MS : false),
    // A record never changes.
    staleTime: Number.POSITIVE_INFINITY,
  })
  const back = (
    <Link to="/$slug/calls" params={{ slug }} search={search}>
      {TEXT.calls}
    </Link>
  )
  return (
    <Page title={idText(callId)} trail={back} isId>
      {isUnknown(shown.error) && <Notice title={TEXT.waiting} />}
      {shown.error && !isUnknown(shown.error) && (
        <Failure error={shown.error} retry={() => shown.refetch()} />
      )}
      {shown.isPending && <Waiting />}
      {shown.data && <OneCall me={me} shown={shown.data} />}
    </Page>
  )
}

/** Whether there is no record of a call, or none yet. */
const isUnknown = (error: unknown): boolean => error instanceof Refusal && error.status === 404

function OneCall({ me, shown }: { me: Me; shown: ShownCall }) {
  const [zone] = useZone()
  const [isJson, setJson] = useState(false)
  useShortcut('y', () => navigator.clipboard.writeText(shown.id))
  const slug = me.organization.slug
  const playground = playgroundSearch(shown)
  return (
    <>
      <Head
        acts={
          <>
            <Neighbours me={me} shown={shown} />
            <CopyButton text={curlText(shown, me.base_url)}>{TEXT.curl}</CopyButton>
            <Button aria-pressed={isJson} onClick={() => setJson(!isJson)}>
              {isJson ? TEXT.facts : TEXT.json}
            </Button>
            {playground && (
              <Link to="/$slug/playground" params={{ slug }} search={playground}>
                <Button tabIndex={-1}>{TEXT.playground}</Button>
              </Link>
            )}
          </>
        }
      >
        <Facts
          look="lede"
          facts={[
            [
              TEXT.status,
              <State key="status" look={LOOK_OF[shown.outcome]}>
                {statusText(shown)}
              </State>,
            ],
            [TEXT.total, <Duration key="total" milliseconds={shown.duration_ms} />],
            [
              TEXT.first,
              shown.first_event_ms === null ? null : (
                <Duration key="first" milliseconds={shown.first_event_ms} />
              ),
            ],
            [TEXT.tokens, tokens(shown)],
            [TEXT.credits, creditText(shown.cost)],
            [
              `${dayText(shown.at, zone)}, ${zoneName(zone)}`,
              <span key="at">
                {clockText(shown.at, zone)}
                <small>{millisecondText(shown.at)}</small>
              </span>,
            ],
          ]}
        />
      </Head>
      {isJson ? (
        <Copyable text={JSON.stringify(shown.record.record, null, 2)} label={TEXT.recordJson} />
      ) : (
        <Columns narrow>
          <div>
            <Waterfall shown={shown} />
            <DataFlow slug={slug} shown={shown} />
            <Section title={TEXT.content}>
              <p>{TEXT.noContent}</p>
            </Section>
          </div>
          <div>
            <WhoAndWhat me={me} shown={shown} />
            <Cost me={me} shown={shown} />
            <Proof shown={shown} />
          </div>
        </Columns>
      )}
    </>
  )
}

function Duration({ milliseconds }: { milliseconds: number }) {
  const [figure, unit] = durationParts(milliseconds)
  return (
    <>
      {figure} <small>{unit}</small>
    </>
  )
}

const tokens = ({ input_tokens: input, output_tokens: output }: ShownCall) =>
  input + output === 0 ? null : (
    <>
      {tokenText(input)} <small>→</small> {tokenText(output)}
    </>
  )
