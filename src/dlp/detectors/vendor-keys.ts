import {
  BASE64, BASE64_ANY, CharacterSet, HEXADECIMAL, LETTERS_AND_DIGITS, LOWER_AND_DIGITS, LOWER_HEXADECIMAL, UPPER_AND_DIGITS,
  URL_SAFE, URL_SAFE_AND_DOT,
} from './characters.ts' // biome-ignore format: a list
import type { KeyDetector, KeyForm } from './detector.ts'

const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const UNDERSCORED = new CharacterSet(`${ALPHANUMERIC}_`)
const DASHED = new CharacterSet(`${ALPHANUMERIC}-`)
const DASHED_HEXADECIMAL = new CharacterSet('0123456789abcdef-')
const URL_SAFE_AND_EQUALS = new CharacterSet(`${ALPHANUMERIC}-_=`)
const URL_TEXT = new CharacterSet(`${ALPHANUMERIC}-_.~:/?@!$&=+%*`)

const SALESFORCE = new CharacterSet(`${ALPHANUMERIC}!._`)
const WEBHOOK = new CharacterSet(`${ALPHANUMERIC}@/-`)

const NO_LIMIT = 1400
const SCORE = 0.97

/** Prefixes with one body: `min` to `max` characters, or exactly `min`. */
function forms(prefixes: string, body: KeyForm['body'], min: number, max = min): KeyForm[] {
  return prefixes.split(' ').map((prefix) => ({ prefix, body, shortest: min, longest: max }))
}

/** A form whose prefix is a common one: its body has capitals and digits, as random text of that length has. */
const withCapitals = (form: KeyForm): KeyForm => ({
  ...form,
  validate: (body) => /[A-Z]/.test(body) && /[a-z]/.test(body) && /\d/.test(body),
})

function vendor(id: string, description: string, ...all: readonly KeyForm[][]): KeyDetector {
  return { id, category: 'secret', description, baseScore: SCORE, forms: all.flat() }
}

/** Amazon's new prefix and 16 characters of base 32 (IAM identifiers, "Unique ID prefixes"). */
const AWS_IDENTIFIERS = 'AKIA ASIA ABIA ACCA'

/**
 * Keys whose form their makers document: a fixed prefix, then so many characters of a set. A form is matched as a
 * whole, so that a longer identifier that merely begins like a key is none.
 */
export const VENDOR_KEYS: readonly KeyDetector[] = [
  vendor('openai_key', 'OpenAI API key',
    forms('sk-proj- sk-svcacct- sk-admin- sk-None-', URL_SAFE, 40, 256), forms('sk-', LETTERS_AND_DIGITS, 40, 64),
    forms('sess-', LETTERS_AND_DIGITS, 40)),
  vendor('anthropic_key', 'Anthropic API key',
    forms('sk-ant-api03- sk-ant-admin01- sk-ant-oat01- sk-ant-ort01- sk-ant-sid01- sk-ant-', URL_SAFE, 32, 256)),
  vendor('deepseek_key', 'DeepSeek, DashScope or Moonshot API key', forms('sk-', LOWER_HEXADECIMAL, 32)),
  vendor('openrouter_key', 'OpenRouter API key', forms('sk-or-v1-', LOWER_HEXADECIMAL, 64)),
  vendor('headgate_key', 'Headgate API key', forms('hg_', UNDERSCORED, 62)),
  vendor('aws_access_key', 'AWS access key identifier', forms(AWS_IDENTIFIERS, UPPER_AND_DIGITS, 16)),
  vendor('google_api_key', 'Google Cloud API key, OAuth secret or token',
    forms('AIza', URL_SAFE, 35), forms('GOCSPX-', URL_SAFE, 28), forms('ya29.', URL_SAFE_AND_DOT, 40, 520),
    forms('AQ.Ab', URL_SAFE, 40, 120)),
  vendor('azure_key', 'Azure account key, shared access key or DevOps token',
    forms('AccountKey= SharedAccessKey= SharedSecretValue=', BASE64, 42, 90).map((form) => ({ ...form, score: 0.95 }))),
  vendor('github_token', 'GitHub token',
    forms('ghp_ gho_ ghu_ ghr_', LETTERS_AND_DIGITS, 36, 255), forms('ghs_', URL_SAFE_AND_DOT, 36, 600),
    forms('github_pat_', UNDERSCORED, 82, 255)),
  vendor('gitlab_token', 'GitLab token',
    forms('glpat- gloas- gldt- glrt- glcbt- glptt- glft- glimt- glagent- glsoat- glffct- GR1348941', URL_SAFE_AND_DOT, 20, 300)),
  vendor('slack_token', 'Slack token or webhook',
    forms('xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxe.xoxp- xoxe.xoxb- xoxc- xoxd- xapp-', URL_SAFE, 20, 300),
    forms('hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/', BASE64_ANY, 30, 120)),
  vendor('stripe_key', 'Stripe secret or restricted key, or signing secret',
    forms('sk_live_ sk_test_ rk_live_ rk_test_', LETTERS_AND_DIGITS, 16, 255), forms('whsec_', BASE64, 32, 64)),
  vendor('twilio_key', 'Twilio API key or account identifier', forms('SK AC', LOWER_HEXADECIMAL, 32)),
  vendor('sendgrid_key', 'SendGrid API key', forms('SG.', URL_SAFE_AND_DOT, 66).map((form) => (
    { ...form, validate: (body: string) => body[22] === '.' }))),
  vendor('npm_token', 'npm token', forms('npm_', LETTERS_AND_DIGITS, 36)),
  vendor('nuget_key', 'NuGet key', forms('oy2', LOWER_AND_DIGITS, 43)),
  vendor('artifactory_token', 'Artifactory token', forms('AKCp', LETTERS_AND_DIGITS, 69), forms('cmVmdGtu', LETTERS_AND_DIGITS, 56)),
  vendor('sonar_token', 'SonarQube token', forms('squ_ sqp_ sqa_', LOWER_HEXADECIMAL, 40)),
  vendor('vercel_token', 'Vercel token', forms('vcp_ vci_ vca_ vcr_ vck_', LETTERS_AND_DIGITS, 40, 64)),
  vendor('fly_token', 'Fly.io token', forms('fm2_', BASE64, 100, NO_LIMIT), forms('fo1_', URL_SAFE, 43)),
  vendor('render_key', 'Render key', forms('rnd_', LETTERS_AND_DIGITS, 28, 40).map(withCapitals)),
  vendor('hubspot_token', 'HubSpot token', forms('pat-na1- pat-na2- pat-eu1- pat-ap1-', DASHED_HEXADECIMAL, 36)),
  vendor('salesforce_token', 'Salesforce access token', forms('00D', SALESFORCE, 90, 200).map((form) => (
    { ...form, validate: (body: string) => /^[A-Za-z0-9]{12,15}!A[QR]/.test(body) }))),
  vendor('typeform_token', 'Typeform token', forms('tfp_', URL_SAFE, 40, 70)),
  vendor('mapbox_token', 'Mapbox secret token', forms('sk.eyJ', URL_SAFE_AND_DOT, 60, 200)),
  vendor('prefect_key', 'Prefect key', forms('pnu_ pnb_', LETTERS_AND_DIGITS, 36)),
  vendor('posthog_key', 'PostHog personal or project secret key', forms('phx_ phs_', LETTERS_AND_DIGITS, 32, 60)),
  vendor('datadog_key', 'Datadog application key', forms('ddapp_ ddpat_', LETTERS_AND_DIGITS, 34, 64)),
  vendor('wandb_key', 'Weights & Biases key', forms('wandb_v1_', UNDERSCORED, 60, 100)),
  vendor('bedrock_key', 'Amazon Bedrock API key', forms('ABSK', BASE64, 100, 300), forms('bedrock-api-key-', BASE64, 100, NO_LIMIT)),
  vendor('elevenlabs_key', 'ElevenLabs key', forms('sk_', LOWER_HEXADECIMAL, 48)),
  vendor('langfuse_key', 'Langfuse secret key', forms('sk-lf-', DASHED_HEXADECIMAL, 36)),
  vendor('tavily_key', 'Tavily key', forms('tvly- tvly-dev- tvly-prod-', URL_SAFE, 32, 64).map(withCapitals)),
  vendor('firecrawl_key', 'Firecrawl key', forms('fc-', LOWER_HEXADECIMAL, 32)),
  vendor('voyage_key', 'Voyage AI key', forms('pa-', URL_SAFE, 43).map(withCapitals)),
  vendor('jina_key', 'Jina AI key', forms('jina_', LETTERS_AND_DIGITS, 60)),
  vendor('neon_password', 'Password of a Neon role', forms('npg_', LETTERS_AND_DIGITS, 12, 20).map(withCapitals)),
  vendor('teams_webhook', 'Microsoft Teams webhook', forms('webhook.office.com/webhookb2/', WEBHOOK, 100, 250)),
  vendor('zapier_webhook', 'Zapier webhook', forms('hooks.zapier.com/hooks/catch/', WEBHOOK, 10, 60)),
  vendor('pypi_token', 'PyPI token', forms('pypi-AgE', URL_SAFE, 50, 1000)),
  vendor('rubygems_key', 'RubyGems API key', forms('rubygems_', LOWER_HEXADECIMAL, 48)),
  vendor('crates_token', 'crates.io token', forms('cio', LETTERS_AND_DIGITS, 32)),
  vendor('huggingface_token', 'Hugging Face token', forms('hf_', LETTERS_AND_DIGITS, 34, 40), forms('api_org_', LETTERS_AND_DIGITS, 34)),
  vendor('cloudflare_key', 'Cloudflare API token, origin key or tunnel token',
    forms('cfut_ cfat_ cfk_', URL_SAFE, 40, 64), forms('v1.0-', DASHED_HEXADECIMAL, 100, 200), forms('eyJhIjoi', BASE64_ANY, 100, 400)),
  vendor('shopify_token', 'Shopify token', forms('shpat_ shpca_ shppa_ shpss_ shpua_', HEXADECIMAL, 32)),
  vendor('digitalocean_token', 'DigitalOcean token', forms('dop_v1_ doo_v1_ dor_v1_', LOWER_HEXADECIMAL, 64)),
  vendor('databricks_token', 'Databricks token', forms('dapi dkea dose', DASHED_HEXADECIMAL, 32, 34)),
  vendor('doppler_token', 'Doppler token', forms('dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.', URL_SAFE_AND_DOT, 40, 80)),
  vendor('figma_token', 'Figma token', forms('figd_ figo_ figor_', URL_SAFE, 40, 60)),
  vendor('grafana_token', 'Grafana token', forms('glsa_', UNDERSCORED, 41, 60), forms('glc_', BASE64, 32, 400)),
  vendor('groq_key', 'Groq API key', forms('gsk_', LETTERS_AND_DIGITS, 48, 60)),
  vendor('xai_key', 'xAI API key', forms('xai-', LETTERS_AND_DIGITS, 60, 100)),
  vendor('perplexity_key', 'Perplexity API key', forms('pplx-', LETTERS_AND_DIGITS, 40, 64)),
  vendor('replicate_token', 'Replicate token', forms('r8_', LETTERS_AND_DIGITS, 37, 40)),
  vendor('nvidia_key', 'NVIDIA API key', forms('nvapi-', URL_SAFE, 60, 80)),
  vendor('cerebras_key', 'Cerebras API key', forms('csk-', LETTERS_AND_DIGITS, 40, 60)),
  vendor('pinecone_key', 'Pinecone API key', forms('pcsk_', UNDERSCORED, 60, 80)),
  vendor('langsmith_key', 'LangSmith key', forms('lsv2_pt_ lsv2_sk_', UNDERSCORED, 40, 50)),
  vendor('linear_key', 'Linear API key', forms('lin_api_ lin_oauth_', LETTERS_AND_DIGITS, 40, 64)),
  vendor('notion_token', 'Notion token', forms('ntn_', LETTERS_AND_DIGITS, 40, 50), forms('secret_', LETTERS_AND_DIGITS, 43)),
  vendor('mailgun_key', 'Mailgun key', forms('key-', LOWER_HEXADECIMAL, 32)),
  vendor('brevo_key', 'Brevo key', forms('xkeysib- xsmtpsib-', DASHED_HEXADECIMAL, 64, 90)),
  vendor('vault_token', 'HashiCorp Vault token', forms('hvs. hvb. hvr.', URL_SAFE, 24, 300)),
  vendor('postman_key', 'Postman key', forms('PMAK-', DASHED_HEXADECIMAL, 59)),
  vendor('pulumi_token', 'Pulumi token', forms('pul-', LOWER_HEXADECIMAL, 40)),
  vendor('sentry_token', 'Sentry token', forms('sntryu_', LOWER_HEXADECIMAL, 64), forms('sntrys_', BASE64_ANY, 60, 400)),
  vendor('square_token', 'Square token', forms('sq0atp-', URL_SAFE, 22), forms('sq0csp-', URL_SAFE, 43), forms('EAAA', URL_SAFE, 60)),
  vendor('supabase_key', 'Supabase key', forms('sbp_', LOWER_HEXADECIMAL, 40), forms('sb_secret_', URL_SAFE, 31, 60)),
  vendor('planetscale_token', 'PlanetScale token', forms('pscale_tkn_ pscale_pw_ pscale_oauth_', URL_SAFE_AND_DOT, 32, 64)),
  vendor('neon_key', 'Neon API key', forms('napi_', LOWER_AND_DIGITS, 60, 70)),
  vendor('netlify_token', 'Netlify token', forms('nfp_ nfc_ nfo_ nfu_ nfb_', LETTERS_AND_DIGITS, 36, 44)),
  vendor('new_relic_key', 'New Relic key', forms('NRAK- NRII- NRJS-', URL_SAFE, 19, 42)),
  vendor('plaid_token', 'Plaid token', forms('access-production- access-sandbox- access-development-', DASHED_HEXADECIMAL, 36)),
  vendor('atlassian_token', 'Atlassian or Bitbucket token',
    forms('ATATT3 ATCTT3', URL_SAFE_AND_EQUALS, 150, 260), forms('ATBB', LETTERS_AND_DIGITS, 32)),
  vendor('docker_token', 'Docker token', forms('dckr_pat_ dckr_oat_', URL_SAFE, 27, 40)),
  vendor('buildkite_token', 'Buildkite token', forms('bkua_', LOWER_HEXADECIMAL, 40)),
  vendor('circleci_token', 'CircleCI token', forms('CCIPAT_ CCIPRJ_', UNDERSCORED, 60, 70)),
  vendor('contentful_token', 'Contentful token', forms('CFPAT-', URL_SAFE, 43)),
  vendor('dynatrace_token', 'Dynatrace token', forms('dt0c01. dt0s01.', URL_SAFE_AND_DOT, 89)),
  vendor('flutterwave_key', 'Flutterwave key', forms('FLWSECK_TEST- FLWSECK-', DASHED, 12, 44)),
  vendor('razorpay_key', 'Razorpay key', forms('rzp_live_ rzp_test_', LETTERS_AND_DIGITS, 14)),
  vendor('tailscale_key', 'Tailscale key', forms('tskey-auth- tskey-api- tskey-client-', URL_SAFE, 20, 80)),
  vendor('snyk_token', 'Snyk token', forms('snyk_uat. snyk_sat.', URL_SAFE_AND_DOT, 40, 200)),
  vendor('sourcegraph_token', 'Sourcegraph token', forms('sgp_ slk_', UNDERSCORED, 40, 64)),
  vendor('airtable_token', 'Airtable token', forms('pat', URL_SAFE_AND_DOT, 79).map((form) => (
    { ...form, validate: (body: string) => body[14] === '.' && /^[0-9a-f]{64}$/.test(body.slice(15)) }))),
  vendor('dropbox_token', 'Dropbox token', forms('sl.', URL_SAFE, 130, 1400)),
  vendor('facebook_token', 'Meta access token', forms('EAA', LETTERS_AND_DIGITS, 100, 400)),
  vendor('age_key', 'age secret key', forms('AGE-SECRET-KEY-1', UPPER_AND_DIGITS, 58)),
  vendor('onepassword_token', '1Password service account token', forms('ops_eyJ', BASE64_ANY, 200, NO_LIMIT)),
  vendor('heroku_key', 'Heroku key', forms('HRKU-', URL_SAFE, 36, 64)),
  vendor('resend_key', 'Resend key', forms('re_', UNDERSCORED, 30, 40).map((form) => ({ ...form, score: 0.8,
    validate: (body: string) => body[8] === '_' && /\d/.test(body) && /[A-Z]/.test(body) }))),
  vendor('easypost_key', 'EasyPost key', forms('EZAK EZTK', LETTERS_AND_DIGITS, 54)),
  vendor('terraform_token', 'Terraform Cloud token', forms('atlasv1.', URL_SAFE, 60, 80)),
  vendor('totp_secret', 'Seed of one-time passwords', forms('otpauth://totp/', URL_TEXT, 20, 400)),
] // biome-ignore format: a table
