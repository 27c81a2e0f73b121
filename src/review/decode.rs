//! An AdmissionReview's bytes into a [`Request`], member by member.
//!
//! Invariant: the envelope is read in whatever order it comes, each member once; a fault in an object is told with the uid
//! where the members before it say what the request is.

use std::borrow::Cow;

use super::{API_VERSION, GroupVersionKind, Operation, Refused, Request, User};
use crate::json::{Json, JsonError, Reader};

/// Decodes a request body.
///
/// # Errors
/// See [`Refused`].
pub fn decode(body: &[u8]) -> Result<Request<'_>, Refused> {
    let mut reader = Reader::new(body).map_err(|error| bad_request(format!("the body is {error}")))?;
    let mut envelope = Envelope::default();
    let found = reader.each_member(|reader, key| envelope.member(reader, &key));
    let whole = found.and_then(|found| {
        if !found {
            reader.skip()?;
        }
        reader.finish()?;
        Ok(found)
    });
    match whole {
        Ok(true) => envelope.request(),
        Ok(false) => Err(bad_request("the body is no JSON object; expected an AdmissionReview")),
        Err(Failure::Json(error @ JsonError::Syntax { .. })) => Err(bad_request(format!("the body is {error}"))),
        Err(Failure::Json(error)) => Err(envelope.unreadable(&error.to_string())),
        Err(Failure::Twice(key)) => Err(envelope.unreadable(&format!("the review has the member {key:?} twice"))),
    }
}

/// The uid of a review, read no further than to it, for an answer to what there was no time to judge. The API server writes it
/// before the objects.
pub fn uid(body: &[u8]) -> Option<String> {
    let mut reader = Reader::new(body).ok()?;
    let halted = reader.each_member(|reader, key| {
        if key != "request" {
            return Ok(reader.skip()?);
        }
        let request = reader.each_member(|reader, key| match key.as_ref() {
            "uid" => Err(Halt(Some(reader.value()?).and_then(|uid| uid.as_str().map(str::to_owned)))),
            _ => Ok(reader.skip()?),
        });
        request.map(|_| ())
    });
    halted.err()?.0
}

/// Ends the reading of a body early: with the uid, or for a fault.
struct Halt(Option<String>);

impl From<JsonError> for Halt {
    fn from(_: JsonError) -> Self {
        Self(None)
    }
}

/// What stops the reading of an envelope.
enum Failure {
    Json(JsonError),
    Twice(&'static str),
}

impl From<JsonError> for Failure {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

/// The members of the review as they come, in whatever order.
#[derive(Default)]
struct Envelope<'a> {
    api_version: Option<Json<'a>>,
    kind: Option<Json<'a>>,
    has_request: bool,
    uid: Option<Json<'a>>,
    object_kind: Option<Json<'a>>,
    sub_resource: Option<Json<'a>>,
    name: Option<Json<'a>>,
    namespace: Option<Json<'a>>,
    operation: Option<Json<'a>>,
    user: Option<Json<'a>>,
    object: Option<Json<'a>>,
    old_object: Option<Json<'a>>,
    dry_run: Option<Json<'a>>,
}

impl<'a> Envelope<'a> {
    fn member(&mut self, reader: &mut Reader<'a>, key: &str) -> Result<(), Failure> {
        match key {
            "apiVersion" => fill(&mut self.api_version, reader, "apiVersion"),
            "kind" => fill(&mut self.kind, reader, "kind"),
            "request" if self.has_request => Err(Failure::Twice("request")),
            "request" => {
                self.has_request = reader.each_member(|reader, key| self.request_member(reader, &key))?;
                if self.has_request { Ok(()) } else { Ok(reader.skip()?) }
            }
            _ => Ok(reader.skip()?),
        }
    }

    fn request_member(&mut self, reader: &mut Reader<'a>, key: &str) -> Result<(), Failure> {
        match key {
            "uid" => fill(&mut self.uid, reader, "request.uid"),
            "kind" => fill(&mut self.object_kind, reader, "request.kind"),
            "subResource" => fill(&mut self.sub_resource, reader, "request.subResource"),
            "name" => fill(&mut self.name, reader, "request.name"),
            "namespace" => fill(&mut self.namespace, reader, "request.namespace"),
            "operation" => fill(&mut self.operation, reader, "request.operation"),
            "userInfo" => fill(&mut self.user, reader, "request.userInfo"),
            "object" => fill(&mut self.object, reader, "request.object"),
            "oldObject" => fill(&mut self.old_object, reader, "request.oldObject"),
            "dryRun" => fill(&mut self.dry_run, reader, "request.dryRun"),
            _ => Ok(reader.skip()?),
        }
    }

    fn request(mut self) -> Result<Request<'a>, Refused> {
        let text = |json: &Option<Json<'a>>| json.as_ref().and_then(Json::as_str).unwrap_or_default().to_owned();
        if text(&self.api_version) != API_VERSION || text(&self.kind) != "AdmissionReview" {
            return Err(bad_request(format!("the body is no AdmissionReview of {API_VERSION}")));
        }
        if !self.has_request {
            return Err(bad_request("the AdmissionReview has no request"));
        }
        let uid = take_text(&mut self.uid);
        if uid.is_empty() {
            return Err(bad_request("request.uid is missing or no string"));
        }
        let operation = text(&self.operation);
        let Some(operation) = Operation::read(&operation) else {
            return Err(bad_request(format!(
                "request.operation {operation:?} is none of CREATE, UPDATE, DELETE, CONNECT"
            )));
        };
        let kind = kind(self.object_kind.take());
        if kind.kind.is_empty() {
            return Err(bad_request("request.kind is missing or has no kind"));
        }
        let request = Request {
            uid,
            kind,
            sub_resource: take_text(&mut self.sub_resource),
            name: take_text(&mut self.name),
            namespace: take_text(&mut self.namespace),
            operation,
            user: user(self.user.take()),
            object: self.object.take().unwrap_or(Json::Null),
            old_object: self.old_object.take().unwrap_or(Json::Null),
            dry_run: self.dry_run == Some(Json::Bool(true)),
        };
        demand_objects(&request)?;
        Ok(request)
    }

    /// A denial where the members before the fault say what the request is; else it is no review.
    fn unreadable(mut self, reason: &str) -> Refused {
        let uid = take_text(&mut self.uid).into_owned();
        let operation = self.operation.as_ref().and_then(Json::as_str).and_then(Operation::read);
        if uid.is_empty() || operation.is_none() || self.object_kind.is_none() {
            return bad_request(format!(
                "the body is no AdmissionReview of {API_VERSION} that can be judged: {reason}"
            ));
        }
        Refused::Unreadable { uid, reason: format!("the request cannot be judged: {reason}") }
    }
}

/// CREATE and UPDATE carry an object; one that is none cannot be judged, and must not pass for that.
fn demand_objects(request: &Request<'_>) -> Result<(), Refused> {
    let unreadable = |what| {
        Err(Refused::Unreadable {
            uid: request.uid.to_string(),
            reason: format!("the request cannot be judged: {what}"),
        })
    };
    let is_object = |json: &Json<'_>| json.as_object().is_some();
    match request.operation {
        Operation::Create | Operation::Update if !is_object(&request.object) => {
            unreadable("request.object is no object")
        }
        Operation::Update if !is_object(&request.old_object) => unreadable("request.oldObject is no object"),
        _ => Ok(()),
    }
}

fn fill<'a>(place: &mut Option<Json<'a>>, reader: &mut Reader<'a>, name: &'static str) -> Result<(), Failure> {
    if place.is_some() {
        return Err(Failure::Twice(name));
    }
    *place = Some(reader.value()?);
    Ok(())
}

fn take_text<'a>(place: &mut Option<Json<'a>>) -> Cow<'a, str> {
    match place.take() {
        Some(Json::String(text)) => text,
        _ => Cow::Borrowed(""),
    }
}

fn kind(json: Option<Json<'_>>) -> GroupVersionKind<'_> {
    let Some(Json::Object(object)) = json else { return GroupVersionKind::default() };
    let mut found = GroupVersionKind::default();
    for (key, value) in object.into_members() {
        let Json::String(text) = value else { continue };
        match key.as_ref() {
            "group" => found.group = text,
            "version" => found.version = text,
            "kind" => found.kind = text,
            _ => {}
        }
    }
    found
}

fn user(json: Option<Json<'_>>) -> User<'_> {
    let Some(Json::Object(object)) = json else { return User::default() };
    let mut found = User::default();
    for (key, value) in object.into_members() {
        match (key.as_ref(), value) {
            ("username", Json::String(name)) => found.name = name,
            ("groups", Json::Array(groups)) => {
                found.groups = groups
                    .into_iter()
                    .filter_map(|group| if let Json::String(group) = group { Some(group) } else { None })
                    .collect();
            }
            _ => {}
        }
    }
    found
}

fn bad_request(sentence: impl Into<String>) -> Refused {
    Refused::BadRequest(sentence.into())
}
